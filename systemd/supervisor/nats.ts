/** The NATS server that the installation starts and owns. */
import { once } from "node:events";
import { existsSync } from "node:fs";
import { rm } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { fileVariable } from "../../shared/config.ts";
import { reachedHere, withPort } from "../../shared/util/host.ts";
import { until } from "../../shared/waiting.ts";
import { asAccount, partEnvironment } from "../base/as-account.ts";
import { StartFailure } from "../base/failure.ts";
import type { Instance, Paths } from "../base/instance.ts";
import { readIfThere, replaceFile } from "../base/write-file.ts";
import { takeUpAgain } from "../cluster/former-store.ts";
import type { Mode } from "../cluster/place.ts";
import type { Member } from "../fleet/members.ts";
import { secretsOf } from "./bus-identities.ts";
import { readableBy } from "./credentials.ts";
import { parseNatsLine } from "./log-line.ts";
import { configurationOf } from "./nats-configuration.ts";
import type { PartSpec } from "./part.ts";
import { checkPortIsFree, freePort } from "./ports.ts";

const startTimeoutMs = 60_000; // loading a large JetStream store takes long

/** The settings with which a part connects to the bus. They contain no secret, only the name of its file. */
export type BusSettings = Readonly<Record<string, string>>;

/** A server that can be started, and how the parts connect to it. */
export interface OwnedNats {
  readonly spec: PartSpec;
  /** Whether it runs here: a machine that is to be a node of a cluster waits until there are enough of them. */
  readonly runs: boolean;
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
  const { config, paths } = instance;
  const port = config.natsPort || (await freePort(config.natsHost));
  await checkPortIsFree(config.natsHost, port, { part: "NATS", setting: "SANDGATE_NATS_PORT" });
  const { mode } = await writeConfiguration(instance, workerIds, port);
  // A cluster was being made when the power went.
  if (mode === "alone") await takeUpAgain(instance);
  // A file of earlier versions.
  await rm(join(paths.data, "nats-password"), { force: true });
  const spec: PartSpec = {
    name: "nats",
    argv: natsCommand(instance),
    env: partEnvironment(instance, "nats"),
    cwd: "/",
    parse: parseNatsLine,
    logFile: join(paths.logs, "nats.log"),
    notes: paths.supervisor,
  };
  const url = natsUrlHere(config.natsHost, port);
  const secrets = secretsOf(instance);
  const settings = (nkeyFile: string): BusSettings => ({
    // Nodes come and go while the parts run.
    ...(mode ? { [fileVariable("SANDGATE_NATS_URL")]: paths.natsUrls } : { SANDGATE_NATS_URL: url }),
    [fileVariable("SANDGATE_NATS_NKEY")]: nkeyFile,
    SANDGATE_NATS_CA: secrets.certificate,
  });
  return { spec, runs: mode !== "waiting", url, gateway: settings(secrets.gateway), worker: (id) => settings(secrets.worker(id)) };
}

/** @param conf the file with its configuration */
export function natsCommand({ accounts, paths }: Instance, conf = paths.natsConf): string[] {
  // The server does not watch a pipe on standard input, so the kernel ends it with its supervisor.
  return asAccount(accounts.nats, ["setpriv", "--pdeathsig", "TERM", "--", ...serverCommand({ ...paths, natsConf: conf })]);
}

/** Starts the server, and what watches its disk. */
export const serverCommand = ({ app, nats, natsConf }: Pick<Paths, "app" | "nats" | "natsConf">): string[] => [
  join(app, "systemd/base/run-nats"),
  nats,
  ...["nats-server", "--config", natsConf],
];

/** Where the parts on the same machine reach a server that listens on `host`. */
export const natsUrlHere = (host: string, port: number): string => `nats://${withPort(reachedHere(host), port)}`;

/** What was written for a server. */
export interface Written {
  /** See `systemd/cluster/place.ts`; absent where there is only one server. */
  readonly mode: Mode | undefined;
  readonly isChanged: boolean;
}

/** Writes the file with which the server starts, and which it reads again when it is told to. */
export async function writeConfiguration(instance: Instance, workerIds: readonly string[], port: number): Promise<Written> {
  const { accounts: users, paths } = instance;
  const members = await membersOf(paths);
  const place = existsSync(paths.natsCluster) ? await (await import("../cluster/place.ts")).placeOf(instance, members) : undefined;
  if (place) await replaceFile(secretsOf(instance).certificate, place.node.authority.certificate, { mode: 0o644 });
  const text = await configurationOf(instance, { workerIds, port, members, ...(place ? { place } : {}) });
  const isChanged = (await readIfThere(paths.natsConf)) !== text;
  if (isChanged) await replaceFile(paths.natsConf, text, readableBy(users.nats));
  if (place) await replaceFile(paths.natsUrls, `${place.servers.join(",")}\n`, { mode: 0o644 });
  // It is that of the authority, which no server of a cluster needs to read.
  if (place?.mode === "clustered") await rm(secretsOf(instance).serverKey, { force: true });
  return { mode: place?.mode, isChanged };
}

/** Loaded only if there is a list: schemas are large, and most installations have none. */
async function membersOf(paths: Paths): Promise<Member[]> {
  const { natsMembers, formerNatsMembers } = paths;
  if (![natsMembers, formerNatsMembers].some(existsSync)) return [];
  return (await import("../fleet/members.ts")).readMembers(paths);
}

/** @throws {StartFailure} if the server does not answer in time, or the signal is aborted. */
export async function waitForNats({ url }: Pick<OwnedNats, "url">, aborted: AbortSignal): Promise<void> {
  if (await until(() => greets(new URL(url)), { timeoutMs: startTimeoutMs, pollMs: 50, signal: aborted })) return;
  throw new StartFailure(`nats-server does not answer on ${url} after ${startTimeoutMs / 1_000} s`);
}

/** Whether a NATS server is there, which speaks first. */
export async function greets({ hostname, port }: URL): Promise<boolean> {
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
