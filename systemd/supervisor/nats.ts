/** The NATS server that the installation starts and owns. */
import { once } from "node:events";
import { existsSync } from "node:fs";
import { rm } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { accountsOf } from "../../shared/bus/permissions.ts";
import { auditBytesMax, bucketBytesMax } from "../../shared/bus/subjects.ts";
import { type Config, fileVariable } from "../../shared/config.ts";
import { reachedHere, withPort } from "../../shared/util/host.ts";
import { until } from "../../shared/waiting.ts";
import { asAccount, partEnvironment } from "../base/as-account.ts";
import { StartFailure } from "../base/failure.ts";
import type { Instance, Paths } from "../base/instance.ts";
import { replaceFile } from "../base/write-file.ts";
import type { Member } from "../fleet/members.ts";
import { identity, secretsOf, serverCertificate, workerIdentity } from "./bus-identities.ts";
import { readableBy } from "./credentials.ts";
import { parseNatsLine } from "./log-line.ts";
import { natsVersion } from "./nats-version.ts";
import type { PartSpec } from "./part.ts";
import { checkPortIsFree, freePort } from "./ports.ts";

// Fits a request body of the largest default size with every character escaped.
const maxPayloadBytes = 8 * 1024 * 1024;
/** The server's default of two seconds is too short for a busy machine. */
const tlsTimeoutS = 15;
/** From this size on, the Go runtime of the server collects garbage more often, instead of letting the heap grow to twice what is in use. */
const memoryTarget = { GOMEMLIMIT: "128MiB" };
const startTimeoutMs = 60_000; // loading a large JetStream store takes long

/** The settings with which a part connects to the bus. They contain no secret, only the name of its file. */
export type BusSettings = Readonly<Record<string, string>>;

/** A server that can be started, and how the parts connect to it. */
export interface OwnedNats {
  readonly spec: PartSpec;
  readonly url: string;
  readonly gateway: BusSettings;
  worker(id: string): BusSettings;
}

/**
 * Writes the server's configuration. The port stays the same when the server restarts.
 *
 * @param workerIds the workers that are started here.
 */
export async function configureNats(instance: Instance, workerIds: readonly string[]): Promise<OwnedNats> {
  const { config, accounts: users, paths } = instance;
  const port = config.natsPort || (await freePort(config.natsHost));
  await checkPortIsFree(config.natsHost, port, { part: "NATS", setting: "SANDGATE_NATS_PORT" });
  await writeConfiguration(instance, workerIds, port);
  // A file of earlier versions.
  await rm(join(paths.data, "nats-password"), { force: true });
  // The server does not watch a pipe on standard input, so the kernel ends it with its supervisor.
  const command = asAccount(users.nats, ["setpriv", "--pdeathsig", "TERM", "--", ...serverCommand(paths)]);
  const spec: PartSpec = {
    name: "nats",
    argv: command,
    env: { ...partEnvironment(instance, "nats"), ...memoryTarget },
    cwd: "/",
    parse: parseNatsLine,
    logFile: join(paths.logs, "nats.log"),
    notes: paths.supervisor,
  };
  const url = natsUrlHere(config.natsHost, port);
  const secrets = secretsOf(instance);
  const settings = (nkeyFile: string): BusSettings => ({
    SANDGATE_NATS_URL: url,
    [fileVariable("SANDGATE_NATS_NKEY")]: nkeyFile,
    SANDGATE_NATS_CA: secrets.certificate,
  });
  return { spec, url, gateway: settings(secrets.gateway), worker: (id) => settings(secrets.worker(id)) };
}

/** Starts the server, and what watches its disk. */
export const serverCommand = ({ app, nats, natsConf }: Pick<Paths, "app" | "nats" | "natsConf">): string[] => [
  join(app, "systemd/base/run-nats"),
  nats,
  ...["nats-server", "--config", natsConf],
];

/** Where the parts on the same machine reach a server that listens on `host`. */
export const natsUrlHere = (host: string, port: number): string => `nats://${withPort(reachedHere(host), port)}`;

/** Writes the file with which the server starts, and which it reads again when it is told to. */
export async function writeConfiguration(instance: Instance, workerIds: readonly string[], port: number): Promise<void> {
  const { config, accounts: users, paths } = instance;
  const secrets = secretsOf(instance);
  await serverCertificate(instance);
  const gateways = await identity(secrets.gateway, users.gateway, 1);
  const workers = await Promise.all(workerIds.map((id) => workerIdentity(instance, id)));
  for (const member of await membersOf(paths)) {
    if (member.role === "gateway") gateways.push(member.nkey);
    else if (!workerIds.includes(member.id)) workers.push(member);
  }
  const tls = { cert_file: secrets.certificate, key_file: secrets.serverKey, timeout: tlsTimeoutS };
  const text = configuration({
    ...{ store: paths.nats, listen: withPort(config.natsHost, port), accounts: accountsOf(gateways, workers), tls },
    ...{ syncAlways: (await natsVersion()).syncsAlways, bytesMax: storeBytesMax(config) },
  });
  await replaceFile(paths.natsConf, text, readableBy(users.nats));
}

/** Loaded only if there is a list: schemas are large, and most installations have none. */
async function membersOf(paths: Paths): Promise<Member[]> {
  const { natsMembers, formerNatsMembers } = paths;
  if (![natsMembers, formerNatsMembers].some(existsSync)) return [];
  return (await import("../fleet/members.ts")).readMembers(paths);
}

/**
 * The size of all buckets, the audit record and the object store when full, doubled: a stream that several gateways create at the same time
 * is counted once for each until all but one have found that it exists.
 */
const storeBytesMax = ({ snapshotArchiveBytesMax }: Config): number =>
  2 * Object.values(bucketBytesMax).reduce((sum, bytes) => sum + bytes, auditBytesMax + snapshotArchiveBytesMax);

/** @throws {StartFailure} if the server does not answer in time, or the signal is aborted. */
export async function waitForNats({ url }: OwnedNats, aborted: AbortSignal): Promise<void> {
  if (await until(() => greets(new URL(url)), { timeoutMs: startTimeoutMs, pollMs: 50, signal: aborted })) return;
  throw new StartFailure(`nats-server does not answer on ${url} after ${startTimeoutMs / 1_000} s`);
}

interface ServerSettings {
  readonly store: string;
  readonly listen: string;
  readonly accounts: object;
  readonly tls: object;
  readonly syncAlways: boolean;
  readonly bytesMax: number;
}

function configuration({ store, listen, accounts, tls, syncAlways, bytesMax }: ServerSettings): string {
  // JSON is a subset of the server's configuration language.
  const settings = {
    listen,
    accounts,
    tls,
    max_payload: maxPayloadBytes,
    // The server reserves the maximum size of the buckets, and would refuse one that is larger than the free disk space.
    jetstream: { store_dir: store, max_memory_store: 256 * 1024 * 1024, max_file_store: bytesMax, ...(syncAlways ? { sync_interval: "always" } : {}) },
  };
  return `${JSON.stringify(settings, undefined, 2)}\n`;
}

/** Waits for the greeting: a NATS server speaks first. */
async function greets({ hostname, port }: URL): Promise<boolean> {
  const socket = connect({ host: hostname.replace(/^\[|\]$/g, ""), port: Number(port) });
  try {
    const [greeting] = (await once(socket, "data", { signal: AbortSignal.timeout(1_000) })) as [Buffer];
    return greeting.toString().startsWith("INFO ");
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
