/** The certificate of a node: signed by the authority of the installation, for the name of owned servers and the node's address. */
import { createHash, createPublicKey, X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import { serverName } from "../../shared/bus/subjects.ts";
import type { Instance } from "../base/instance.ts";
import { readIfThere, replaceFile } from "../base/write-file.ts";
import { secretsOf } from "../supervisor/bus-identities.ts";
import { makeCertificate, newCertificateKey } from "../supervisor/certificate.ts";
import { kept, secretFor } from "../supervisor/credentials.ts";
import type { Node } from "./identity.ts";

/**
 * Makes the key and the certificate of a node if they are missing, or if the node has another address now.
 *
 * @param host where other nodes reach it
 * @returns the fingerprint of its key
 */
export async function nodeCertificate(instance: Instance, { authority }: Node, host: string): Promise<string> {
  const files = secretsOf(instance);
  await replaceFile(files.certificate, authority.certificate, { mode: 0o644 });
  const key = await kept(files.nodeKey, newCertificateKey, secretFor(instance, "nats"));
  const present = await readIfThere(files.nodeCertificate);
  if (!present || !isFor(present, authority.certificate, key, host))
    await replaceFile(files.nodeCertificate, await signed(instance, authority, host), { mode: 0o644 });
  return createHash("sha256")
    .update(createPublicKey(key).export({ type: "spki", format: "der" }))
    .digest("hex");
}

function isFor(text: string, authority: string, key: string, host: string): boolean {
  const certificate = new X509Certificate(text);
  const isOwn = certificate.publicKey.equals(createPublicKey(key)) && certificate.checkIssued(new X509Certificate(authority));
  return isOwn && (isIP(host) ? certificate.checkIP(host) : certificate.checkHost(host)) !== undefined;
}

async function signed(instance: Instance, authority: Node["authority"], host: string): Promise<string> {
  const { nodeKey, certificate, authorityKey } = secretsOf(instance);
  await replaceFile(authorityKey, authority.key, { mode: 0o600 });
  const names = [`DNS:${serverName}`, `${isIP(host) ? "IP" : "DNS"}:${host}`];
  return makeCertificate({ keyFile: nodeKey, names, authority: { certificate, key: authorityKey } });
}
