/**
 * The identities of the parts and of the owned NATS server: made once, kept in a folder of the supervisor. A part
 * authenticates by signing the server's challenge (nkeys) and accepts only a server with the key of the pinned certificate
 * (TLS). So a process that takes the port while the server is away learns nothing, and no part mistakes it for the server.
 *
 * TLS is used rather than checking who owns the other end of the socket: every NATS client supports it, and it also works
 * between machines. It costs a stream of 64 KiB frames a quarter of the throughput (155 instead of 205 MB/s with both ends
 * in one process on two cores), which is still more than commands produce.
 */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { join } from "node:path";
import { createUser } from "@nats-io/nkeys";
import { publicNkey } from "../../shared/bus/nkey.ts";
import type { WorkerIdentity } from "../../shared/bus/permissions.ts";
import { serverName } from "../../shared/bus/subjects.ts";
import { newId } from "../../shared/util/ids.ts";
import { readAsAccount } from "../base/as-account.ts";
import type { Instance, Paths } from "../base/instance.ts";
import { type Ownership, readIfThere, replaceFile } from "../base/write-file.ts";
import { makeCertificate, newCertificateKey } from "./certificate.ts";
import { kept, secretFor } from "./credentials.ts";

const decoder = new TextDecoder();

/** The files of one installation's secrets, by what they are for. */
export const secretsOf = ({ paths }: { readonly paths: Pick<Paths, "secrets"> }) => ({
  gateway: join(paths.secrets, "gateway.nk"),
  /** Of root's commands on a machine with a NATS server: backups, the audit record, the copies of a cluster. */
  root: join(paths.secrets, "root.nk"),
  worker: (id: string) => join(paths.secrets, `worker-${id}.nk`),
  /** The certificate by which the parts verify the server. Not secret. */
  certificate: join(paths.secrets, "nats.crt"),
  serverKey: join(paths.secrets, "nats.key"),
  /** In a cluster, that certificate is the authority's, and each server has one of its own. */
  authorityKey: join(paths.secrets, "nats-authority.key"),
  nodeCertificate: join(paths.secrets, "nats-node.crt"),
  nodeKey: join(paths.secrets, "nats-node.key"),
});

/** The public keys of an identity, whose seeds are in a file. @param ownership for the part that reads it; nobody but who starts the parts when absent */
async function identity(file: string, count: 1 | 2, ownership?: Ownership): Promise<string[]> {
  const make = (): string => Array.from({ length: count }, () => decoder.decode(createUser().getSeed())).join("\n");
  const text = await kept(file, make, ownership);
  return text.split(/\s+/).map((seed) => publicNkey(seed));
}

/** A worker's identities, for calls and for storage. */
export async function workerIdentity(instance: Instance, id: string): Promise<WorkerIdentity> {
  const [nkey = "", storeNkey = ""] = await identity(secretsOf(instance).worker(id), 2, secretFor(instance, "worker"));
  return { id, nkey, storeNkey };
}

/** The public key of the gateway on this machine. */
export async function gatewayIdentity(instance: Instance): Promise<string> {
  const [nkey = ""] = await identity(secretsOf(instance).gateway, 1, secretFor(instance, "gateway"));
  return nkey;
}

/** The public key of root's commands on this machine. */
export async function rootIdentity(instance: Instance): Promise<string> {
  const [nkey = ""] = await identity(secretsOf(instance).root, 1);
  return nkey;
}

/** The seed of root's commands; empty before a start has made it. */
export async function rootSeed(instance: Instance): Promise<string> {
  return (await readIfThere(secretsOf(instance).root))?.trim() ?? "";
}

/** The server's certificate and key. */
export async function serverCertificate(instance: Instance): Promise<void> {
  const { certificate, serverKey } = secretsOf(instance);
  const key = createPrivateKey(await kept(serverKey, newCertificateKey, secretFor(instance, "nats")));
  const present = await readIfThere(certificate);
  if (present && new X509Certificate(present).checkPrivateKey(key)) return;
  await replaceFile(certificate, await makeCertificate({ keyFile: serverKey, names: [`DNS:${serverName}`] }), { mode: 0o644 });
}

/**
 * The worker's id, to which its identity is bound. Workers of earlier versions made one themselves, in their own folder: it
 * is taken over once, and used only as a name.
 */
export async function workerIdOf(instance: Instance): Promise<string> {
  const { config } = instance;
  if (config.workerId) return config.workerId;
  return kept(join(instance.paths.supervisor, "worker-id"), async () => (await formerName(instance)) ?? newId("worker"));
}

/** Reads a worker's name from a file that the worker could have replaced with anything. Therefore reads it as the worker's user. */
async function formerName({ accounts, paths }: Instance): Promise<string | undefined> {
  const text = await readAsAccount(accounts.worker, join(paths.data, "worker", "worker-id"), 128);
  return /^[a-zA-Z0-9_-]{1,63}$/.exec(text.trim())?.[0];
}
