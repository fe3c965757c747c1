/** `sandgate-admin backup`: a copy of what an installation keeps, made while it runs. */
import { lstat, readdir } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { JetStreamApiError, jetstream, jetstreamManager } from "@nats-io/jetstream";
import { Kvm } from "@nats-io/kv";
import { type NatsConnection, RequestError, TimeoutError } from "@nats-io/transport-node";
import { onAbort } from "../../shared/abort.ts";
import { SnapshotEntry } from "../../shared/bus/entries.ts";
import { isApiError } from "../../shared/bus/failures.ts";
import { copyStream } from "../../shared/bus/stream-copies.ts";
import { buckets, layerSubjects } from "../../shared/bus/subjects.ts";
import type { BackupResult } from "../../shared/cli/admin/backup.ts";
import { checker } from "../../shared/schemas/validate.ts";
import type { Environment } from "../../shared/setting-kinds.ts";
import { readAsAccount } from "../base/as-account.ts";
import { StartFailure } from "../base/failure.ts";
import { type Instance, runsHere } from "../base/instance.ts";
import type { Progress, Terminal } from "../base/terminal.ts";
import { readIfThere } from "../base/write-file.ts";
import { record } from "../supervisor/audit.ts";
import { connectAs } from "../supervisor/bus-connection.ts";
import { secretsOf, workerIdOf } from "../supervisor/bus-identities.ts";
import { tryLock } from "../supervisor/lock.ts";
import { natsVersion } from "../supervisor/nats-version.ts";
import { settingsDir } from "../units/places.ts";
import { installationHere, natsOf, programVersion } from "./here.ts";
import { keptFiles, recordsDir, recordsName, settingsPrefix, streamFiles, streamsAfter, streamsBefore } from "./kept.ts";
import { formatVersion } from "./manifest.ts";
import { addNamed } from "./named.ts";
import { authorityKey, refuseWaiting } from "./nodes.ts";
import { ownerOf } from "./owners.ts";
import { Target } from "./target.ts";
import { copiedRecords } from "./workers-files.ts";

const homeBytesMax = 128;
const MiB = 1024 * 1024;

interface Source {
  readonly instance: Instance;
  readonly isServices: boolean;
  readonly environment: Environment;
  readonly connection: NatsConnection;
  /** Of the worker on this machine, if one has been started here. */
  readonly workerId: string | undefined;
}

/**
 * @param dir a folder that is empty or does not exist
 * @throws {StartFailure}, {UntrustedPath}, {CopyFailed}; the reason of the signal. Nothing is left then.
 */
export async function backup(dir: string, terminal: Terminal, signal: AbortSignal): Promise<BackupResult> {
  const { instance, isServices, environment } = await installationHere();
  await refuseWaiting(instance);
  const url = await natsOf(instance);
  const lock = await tryLock(join(instance.paths.supervisor, "backup.lock"));
  if (!lock) throw new StartFailure("Another backup of this installation is being made; wait for it.");
  const connection = await connectAs("backup", instance, url).catch((error: unknown) => {
    lock.release();
    throw error;
  });
  // What is waited for then fails at once.
  onAbort(signal, () => void connection.close());
  try {
    const source = { instance, isServices, environment, connection, workerId: await workerHere(instance) };
    const target = await Target.make(dir, await archiveBytes(connection), signal);
    try {
      const result = await terminal.task("Backing up", instance.paths.data, (progress) => fill(target, source, progress));
      await record(instance, url, "adminBackUp");
      return result;
    } catch (error) {
      await target.discard();
      throw asFailure(error);
    }
  } finally {
    await connection.close();
    lock.release();
  }
}

async function fill(target: Target, source: Source, progress: Progress): Promise<BackupResult> {
  const { connection, isServices, workerId } = source;
  const created_at = new Date().toISOString();
  const say = (what: string): void => progress.say(`${what}, ${Math.round(target.bytes / MiB)} MiB written`);
  await addFiles(target, source);
  for (const stream of streamsBefore) await addStream(target, connection, stream, say);
  const snapshots_without_files = await snapshotsWithoutFiles(connection);
  if (workerId) {
    say("the worker's records");
    await target.add(recordsName, copiedRecords(source.instance));
  }
  for (const stream of streamsAfter) await addStream(target, connection, stream, say);
  const about = { version: await programVersion(), nats_version: (await natsVersion()).text, created_at, host: hostname() };
  const rest = { format: formatVersion, ...about, ...(workerId ? { worker_id: workerId } : {}), services: isServices, snapshots_without_files } as const;
  const { dir } = await target.complete(rest);
  return { dir, created_at, bytes: target.bytes, snapshots_without_files };
}

async function addFiles(target: Target, { instance, isServices, environment, workerId }: Source): Promise<void> {
  const { serverKey } = secretsOf(instance);
  for (const { name, path, isWorkers } of keptFiles(instance, workerId)) {
    const found = isWorkers ? await readAsAccount(instance.account, path, homeBytesMax) : await readIfThere(path);
    const content = found ?? (path === serverKey ? await authorityKey(instance) : undefined);
    if (content) await target.add(name, [Buffer.from(content)]);
  }
  await addNamed(target, environment);
  if (!isServices) return;
  for (const entry of await readdir(settingsDir, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name);
    await target.add(settingsPrefix + path.slice(settingsDir.length + 1), [Buffer.from((await readIfThere(path)) ?? "")], await ownerOf(path));
  }
}

async function addStream(target: Target, connection: NatsConnection, stream: string, say: (what: string) => void): Promise<void> {
  const { shape, content } = streamFiles(stream);
  say(stream);
  const copy = await copyStream(connection, stream);
  if (!copy) throw new StartFailure(`The NATS server has no ${stream}: is this the installation's, and has a gateway been started?`);
  const entry = await target.begin(content);
  for await (const piece of copy.pieces) {
    await entry.write(piece);
    say(stream);
  }
  await entry.end();
  await target.add(shape, [Buffer.from(JSON.stringify(copy.shape))]);
}

/** The worker whose records are on this machine. */
async function workerHere(instance: Instance): Promise<string | undefined> {
  const isStarted = runsHere(instance.config, "worker") && (await lstat(recordsDir(instance)).catch(() => undefined)) !== undefined;
  return isStarted ? workerIdOf(instance) : undefined;
}

/** What cannot be made smaller: all else is little. @throws {StartFailure} while nothing can be read */
async function archiveBytes(connection: NatsConnection): Promise<number> {
  try {
    const { streams } = await jetstreamManager(connection);
    return (await streams.info(layerSubjects.stream)).state.bytes;
  } catch (cause) {
    if (isApiError(cause, "noStream")) return 0;
    throw asFailure(cause);
  }
}

/** What the server says, or does not say, in words for the operator. */
function asFailure(cause: unknown): unknown {
  if (!(cause instanceof TimeoutError || cause instanceof RequestError || cause instanceof JetStreamApiError)) return cause;
  return new StartFailure("The NATS server does not give what it stores; of several, a majority must run. See: journalctl -t sandgate-nats", { cause });
}

const checkEntry = checker(SnapshotEntry);

/** The snapshots whose files only their workers have. */
async function snapshotsWithoutFiles(connection: NatsConnection): Promise<string[]> {
  const kv = await new Kvm(jetstream(connection)).open(buckets.snapshots);
  const found: string[] = [];
  for await (const key of await kv.keys()) {
    const entry = await kv.get(key);
    if (entry?.operation !== "PUT") continue;
    const { id, status, archived } = checkEntry(entry.json());
    if (status === "ready" && archived !== "done") found.push(id);
  }
  return found;
}
