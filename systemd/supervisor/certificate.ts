/**
 * Certificates for NATS servers. They are valid from a day before they are made: the clocks of machines differ, and one that is
 * behind would refuse them.
 */
import { generateKeyPairSync } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { serverName } from "../../shared/bus/subjects.ts";
import { run } from "../base/run.ts";

const dayMs = 86_400_000;
/** A hundred years. Certificates are never renewed; remove the file of one to make a new one. */
const validMs = 36_500 * dayMs;

export interface CertificateRequest {
  /** With the key of the server. */
  readonly keyFile: string;
  /** As in "DNS:localhost" or "IP:10.0.0.1". */
  readonly names: readonly string[];
  /** The files of the authority that signs it; without one it is an authority itself. */
  readonly authority?: { readonly certificate: string; readonly key: string };
}

/** A new private key, in PEM. */
export const newCertificateKey = (): string =>
  generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey.export({ type: "pkcs8", format: "pem" }).toString();

/** Makes a certificate. @returns it in PEM @throws {CommandError} */
export async function makeCertificate({ keyFile, names, authority }: CertificateRequest): Promise<string> {
  // Root's alone, like all that is made there.
  const dir = await mkdtemp(join(tmpdir(), "sandgate-certificate-"));
  const [configuration, request] = [join(dir, "openssl.cnf"), join(dir, "request")];
  try {
    await writeFile(join(dir, "index.txt"), "");
    await writeFile(configuration, configurationText(dir, names, authority ? "CA:FALSE" : "critical, CA:TRUE"));
    await run(["openssl", "req", "-new", "-config", configuration, "-key", keyFile, "-out", request]);
    const signer = authority ? ["-cert", authority.certificate, "-keyfile", authority.key] : ["-selfsign", "-keyfile", keyFile];
    // Other commands of openssl cannot date back before version 3.4.
    const dates = ["-startdate", asn1Time(Date.now() - dayMs), "-enddate", asn1Time(Date.now() + validMs)];
    return `${await run(["openssl", "ca", "-batch", "-config", configuration, "-notext", ...dates, ...signer, "-in", request])}\n`;
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

/** As openssl takes it: YYYYMMDDHHMMSSZ. */
const asn1Time = (ms: number): string => `${new Date(ms).toISOString().slice(0, 19).replaceAll(/\D/g, "")}Z`;

const configurationText = (dir: string, names: readonly string[], constraints: string): string => `
[req]
prompt = no
distinguished_name = subject
[subject]
CN = ${serverName}
[ca]
default_ca = signing
[signing]
database = ${dir}/index.txt
new_certs_dir = ${dir}
rand_serial = yes
default_md = sha256
policy = any
x509_extensions = extensions
[any]
commonName = supplied
[extensions]
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
basicConstraints = ${constraints}
subjectAltName = ${names.join(",")}
`;
