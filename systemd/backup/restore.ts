/** `sandgate-admin restore`: an installation as a backup has it, made beside the place where it belongs and then put there. */
import { createReadStream, existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { jetstream } from "@nats-io/jetstream";
import { Kvm } from "@nats-io/kv";
import type { NatsConnection } from "@nats-io/transport-node";
import { makeStreamAgain, type StreamShape } from "../../shared/bus/stream-copies.ts";
import { buckets, entryKey, layerSubjects } from "../../shared/bus/subjects.ts";
import type { RestoreOptions, RestoreResult } from "../../shared/cli/admin/backup.ts";
import { restoredMarkOf } from "../../shared/config.ts";
import { StartFailure } from "../base/failure.ts";
import { type Instance, instanceOf } from "../base/instance.ts";
import { run } from "../base/run.ts";
import type { Progress, Terminal } from "../base/terminal.ts";
import { trustedPath } from "../base/trusted-path.mjs";
import { replaceFile } from "../base/write-file.ts";
import { findAccounts, serviceAccounts } from "../setup/account.ts";
import { createAdministrator } from "../setup/administrator.ts";
import { dataDirectories } from "../setup/directories.ts";
import { systemPackages } from "../setup/packages.ts";
import { ensure } from "../setup/step.ts";
import { makeSupervisorFolder } from "../supervisor/alone.ts";
import { connectAs } from "../supervisor/bus-connection.ts";
import { secretFor } from "../supervisor/credentials.ts";
import { TemporaryServer } from "../supervisor/temporary-server.ts";
import { type KeptFile, keptFiles, membersName, recordsDir, recordsName, streamFiles, streamsAfter, streamsBefore } from "./kept.ts";
import { type Manifest, verifiedManifest } from "./manifest.ts";
import { writeNamed } from "./named.ts";
import { membersToRestore, onOneServer } from "./nodes.ts";
import { type Place, placeFor, putInPlace, writeSettings } from "./place.ts";
import { writeAsWorker } from "./workers-files.ts";

interface Task {
  /** The backup. */
  readonly dir: string;
  readonly manifest: Manifest;
  /** The installation that is being made. */
  readonly instance: Instance;
  readonly signal: AbortSignal;
  readonly progress: Progress;
}

/**
 * @throws {StartFailure} for a backup that is not whole, an installation with data or one that runs; {UntrustedPath}, {CopyFailed};
 *   the reason of the signal. Everything is as before then.
 */
export async function restore(given: string, { replace = false }: RestoreOptions, terminal: Terminal, signal: AbortSignal): Promise<RestoreResult> {
  const dir = trustedPath(given);
  const manifest = await terminal.task("Checking the backup", dir, () => verifiedManifest(dir));
  const place = await placeFor(dir, manifest, replace);
  // Parts of what is made belong to the accounts of the parts; this program follows no link in there.
  const removePartial = (): Promise<unknown> =>
    run(["rm", "--recursive", "--force", "--one-file-system", "--", place.partial, ...(place.settings ? [place.settings.partial] : [])]);
  try {
    // One that was killed has left it.
    await removePartial();
    const instance = await prepare(place, await archiveBytesMax(dir), terminal, signal);
    const sandboxes = await terminal.task("Restoring", place.data, (progress) => fill({ dir, manifest, instance, signal, progress }));
    if (manifest.services) await writeSettings(dir, manifest, place);
    signal.throwIfAborted();
    await run(["sync", "--file-system", place.partial]);
    const undo = await writeNamed({ dir, manifest, ...place, warn: (line) => terminal.warn(line) });
    const replaced = await putInPlace(place).catch(async (error: unknown) => {
      await undo();
      throw error;
    });
    const { created_at, snapshots_without_files } = manifest;
    return { data_dir: place.data, created_at, sandboxes_without_files: sandboxes, snapshots_without_files, replaced, services: manifest.services };
  } finally {
    await removePartial();
    place.release();
  }
}

/** Installs and makes what a start would, as far as it is needed, and the folders. */
async function prepare({ config, partial, settings }: Place, snapshotArchiveBytesMax: number, terminal: Terminal, signal: AbortSignal): Promise<Instance> {
  const administrator = createAdministrator(terminal, signal);
  await ensure(systemPackages({ ...config, role: "nats", natsUrl: "" }, { hasVolume: false }, administrator), terminal);
  await ensure(serviceAccounts(config, administrator), terminal);
  // The server is for this process alone.
  const bus = { natsUrl: "", natsHost: "127.0.0.1", natsPort: 0, snapshotArchiveBytesMax };
  const instance = instanceOf(
    { ...config, ...bus, dataDir: partial, storageDir: join(partial, "containers") },
    await findAccounts(config),
    settings ? "systemd" : "supervisor",
  );
  makeSupervisorFolder(instance.paths.supervisor);
  await dataDirectories(instance).provide({ say: () => {} });
  return instance;
}

/** @returns how many sandboxes of the worker here there were */
async function fill(task: Task): Promise<number> {
  const { dir, manifest, instance, progress } = task;
  const inBackup = new Set(manifest.files.map(({ name }) => name));
  for (const file of keptFiles(instance, manifest.worker_id)) if (inBackup.has(file.name)) await writeKept(task, file);
  const count = await addStreams(task, inBackup);
  if (!inBackup.has(recordsName)) return count;
  progress.say("the worker's records");
  const { accounts, paths } = instance;
  await writeAsWorker(accounts.worker, join(recordsDir(instance), "data.mdb"), { file: join(dir, recordsName) });
  await writeAsWorker(accounts.worker, restoredMarkOf(paths.data), { text: manifest.created_at });
  return count;
}

/** @returns how many sandboxes of the worker here there were */
async function addStreams(task: Task, inBackup: ReadonlySet<string>): Promise<number> {
  const { instance, manifest, signal } = task;
  await using server = await TemporaryServer.start(instance, "restoring", { workerIds: [], members: [] }, signal);
  const work = async (): Promise<number> => {
    const connection = await connectAs("restore", instance, server.url);
    try {
      for (const stream of [...streamsBefore, ...streamsAfter]) {
        if (inBackup.has(streamFiles(stream).content)) await addStream(task, connection, stream);
      }
      return manifest.worker_id ? await sandboxesOf(connection, manifest.worker_id) : 0;
    } finally {
      await connection.close();
    }
  };
  return await server.during(work());
}

async function writeKept({ dir, instance }: Task, { name, path, reader, isWorkers }: KeptFile): Promise<void> {
  const from = join(dir, name);
  if (isWorkers) return writeAsWorker(instance.accounts.worker, path, { file: from });
  const ownership = reader === "everybody" ? { mode: 0o644 } : reader ? secretFor(instance, reader) : { mode: 0o600 };
  await replaceFile(path, name === membersName ? await membersToRestore(dir) : await readFile(from), ownership);
}

async function addStream({ dir, signal, progress }: Task, connection: NatsConnection, stream: string): Promise<void> {
  const { shape, content } = streamFiles(stream);
  progress.say(stream);
  const stored = JSON.parse(await readFile(join(dir, shape), "utf8")) as StreamShape;
  await makeStreamAgain(connection, onOneServer(stored), pieces(join(dir, content), signal));
}

const pieceBytes = 128 * 1024;

async function* pieces(path: string, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  for await (const piece of createReadStream(path, { highWaterMark: pieceBytes })) {
    signal.throwIfAborted();
    yield piece as Buffer;
  }
}

/** What the object store may hold, for which the server must have room. */
async function archiveBytesMax(dir: string): Promise<number> {
  const path = join(dir, streamFiles(layerSubjects.stream).shape);
  if (!existsSync(path)) throw new StartFailure(`the backup is not whole: ${path} is missing`);
  return (JSON.parse(await readFile(path, "utf8")) as StreamShape).config.max_bytes;
}

async function sandboxesOf(connection: NatsConnection, workerId: string): Promise<number> {
  const kv = await new Kvm(jetstream(connection)).open(buckets.sandboxes);
  let count = 0;
  for await (const _ of await kv.keys(entryKey(workerId, "*"))) count++;
  return count;
}
