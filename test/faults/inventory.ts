/** Everything that an installation holds on its machine, to be compared before the first call and after the last sandbox is gone. */
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { jetstreamManager } from "@nats-io/jetstream";
import { LayerCollector } from "../../gateway/fleet/layers.ts";
import { type Bucket, bucketStream, buckets, layerSubjects } from "../../shared/bus/subjects.ts";
import { attempt } from "../../shared/util/attempt.ts";
import { distinctFolders, groupFoldersOf } from "../../shared/util/control-groups.ts";
import { parseMounts } from "../../shared/util/mounts.ts";
import { processIds } from "../../shared/util/proc.ts";
import { idFiles, idRangesOf } from "../../systemd/base/subordinate-ids.ts";
import { commandLineOf, environmentOf, parentOf, userOf } from "../../worker/runtime/process/proc.ts";
import { Store } from "../../worker/store/store.ts";
import { connectBus } from "../helpers/bus.ts";
import { hostState } from "../helpers/host-state.ts";
import { residentBytes } from "../helpers/prepare.ts";
import type { TestProcess } from "../helpers/process.ts";
import type { Stack } from "../helpers/stack.ts";
import { until } from "../helpers/until.ts";
import { loopFiles } from "../helpers/volume.ts";
import type { Workload } from "./workload.ts";

const MiB = 1024 ** 2;
const settledMsMax = 45_000;
/** What a process may have grown by after all that it has seen, unless a trial allows more. */
const growthBytesDefault = 150 * MiB;

/** Sorted lines, each of something that is there. */
export type Inventory = Readonly<Record<string, readonly string[]>>;

export async function inventoryOf(stack: Stack): Promise<Inventory> {
  const { account } = stack.instance;
  const workerIds = stack.workers.map(({ spec }) => spec.env.SANDGATE_WORKER_ID ?? "");
  const folders = distinctFolders(groupFoldersOf(account.uid)?.folders ?? {});
  const parts = stack.workers.map((worker) => hostState(worker));
  return {
    processes: processesOf(stack),
    containers: (await stack.containers()).map(({ sandboxId }) => sandboxId),
    layers: parts.flatMap(({ layers }) => layers),
    roots: parts.flatMap(({ roots }) => roots),
    mounts: parts.flatMap(({ mounts }) => mounts),
    "mounts of the machine": parseMounts(readFileSync("/proc/self/mountinfo", "utf8")).flatMap(({ point }) => (point.startsWith(stack.dataDir) ? [point] : [])),
    "loop devices": loopFiles().filter((file) => file.startsWith(stack.dataDir)),
    // One without a process goes when the next sandbox does.
    "control groups": folders.flatMap((folder) => workerIds.flatMap((id) => busyGroupsIn(join(folder, id)))),
    "files of the worker": stack.workers.flatMap((worker) => filesOf(stack, worker)),
    ...(await storedIn(stack)),
  };
}

/** Notes what has been added, once what ends by itself has done so, with the name of what it belongs to. */
export async function findLeftovers(stack: Stack, before: Inventory, { models, history }: Workload): Promise<void> {
  let left: { kind: string; item: string }[] = [];
  await until(
    "nothing is left",
    async () => {
      // What was being stored for a snapshot when that was deleted may come later.
      await sweepLayers(stack);
      const now = await inventoryOf(stack);
      left = Object.entries(now).flatMap(([kind, items]) => added(before[kind], items).map((item) => ({ kind, item })));
      return left.length === 0;
    },
    settledMsMax,
  ).catch(() => {});
  const all = [...models.sandboxes, ...models.snapshots];
  for (const { kind, item } of left) history.find(all.find(({ id }) => id !== undefined && item.includes(id))?.name ?? kind, `left among the ${kind}: ${item}`);
}

/** What one of the gateways does every hour. */
async function sweepLayers({ natsUrl }: Stack): Promise<void> {
  await using bus = await connectBus(natsUrl, "test-sweep");
  await (await LayerCollector.open(bus)).sweep(async () => []);
}

/** Resident bytes of each part. */
export function memoryOf(stack: Stack): Map<string, number> {
  return new Map([stack.nats, ...stack.workers, ...stack.gateways].map(({ spec, pid }, index) => [`${spec.name} ${index}`, residentBytes(pid)]));
}

export function assertMemoryAsBefore(stack: Stack, before: ReadonlyMap<string, number>, growthBytesMax = growthBytesDefault): void {
  for (const [name, bytes] of memoryOf(stack)) {
    const grown = bytes - (before.get(name) ?? 0);
    assert.ok(grown < growthBytesMax, `${name} has grown by ${Math.round(grown / MiB)} MiB`);
  }
}

/** Asserts that the worker's records say nothing of sandboxes and snapshots. While it does not run. */
export async function assertNoRecords(stack: Stack): Promise<void> {
  for (const { spec } of stack.workers) {
    const dir = join(spec.env.SANDGATE_DATA_DIR ?? "", "worker/lmdb");
    const store = new Store(dir);
    const left = { sandboxes: store.sandboxes(), snapshots: store.snapshots(), facts: namesIn(`${dir}.facts`) };
    await store.close();
    assert.deepEqual(left, { sandboxes: [], snapshots: [], facts: [] });
  }
}

/** By the users of the parts and the ids of sandboxes, without arguments that change. Other installations have the same users. */
function processesOf(stack: Stack): string[] {
  const { account, accounts } = stack.instance;
  const users = new Set(Object.values(accounts).map(({ uid }) => uid));
  const ranges = idRangesOf(account, idFiles.user);
  const isOurs = (uid: number): boolean => users.has(uid) || ranges.some(({ first, count }) => uid >= first && uid < first + count);
  const found = processIds().filter((pid) => isOurs(userOf(pid) ?? -1) && isOf(stack, pid));
  // Podman's service comes when it is needed, and goes by itself.
  return found.map((pid) => describe(commandLineOf(pid))).filter((line) => line !== "" && !line.startsWith("podman system service"));
}

/** Whether a process, or one that it comes from, names what only this installation has: its folder, or one of its workers. */
function isOf({ dataDir, workers }: Stack, pid: number): boolean {
  const names = [dataDir, ...workers.map(({ spec }) => spec.env.SANDGATE_WORKER_ID ?? dataDir)];
  for (let each: number | undefined = pid; each !== undefined && each > 1 && each !== process.pid; each = parentOf(each)) {
    const told = [...commandLineOf(each), ...environmentOf(each), attempt(() => readFileSync(`/proc/${each}/cgroup`, "utf8"))].join("\n");
    if (names.some((name) => told.includes(name))) return true;
  }
  return false;
}

const describe = ([program = "", ...args]: readonly string[]): string =>
  [basename(program), ...args.filter((word) => /^[a-z/.-]{1,40}$/.test(word)).slice(0, 3)].join(" ").trim();

/** Without those of the records, which stay. */
function filesOf({ instance }: Stack, { spec: { env } }: TestProcess): string[] {
  const { SANDGATE_DATA_DIR: data = "", SANDGATE_VOLUME_DIR: volume, SANDGATE_WORKER_ID: id = "" } = env;
  const dirs = [data, join(data, "worker"), join(data, "tmp"), ...(volume ? [volume, join(volume, id)] : []), join(instance.runtimeDir, "sandgate", id)];
  return dirs.flatMap((dir) => namesIn(dir).map((name) => join(dir, name))).filter((file) => !/\/(lmdb|log)[^/]*$/.test(file) && !file.includes(".sock"));
}

function busyGroupsIn(folder: string): string[] {
  const groups = existsSync(folder) ? readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory()) : [];
  return groups.map(({ name }) => join(folder, name)).filter((group) => attempt(() => readFileSync(join(group, "cgroup.procs"), "utf8")));
}

const namesIn = (dir: string): string[] => (existsSync(dir) ? readdirSync(dir) : []);

/** Consumers and entries in JetStream, read without a consumer of our own. */
async function storedIn({ natsUrl }: Stack): Promise<Record<string, string[]>> {
  await using bus = await connectBus(natsUrl, "test-inventory");
  const jsm = await jetstreamManager(bus.connection);
  const consumers: string[] = [];
  // Others end by themselves when nobody has used them for minutes.
  for await (const { config } of jsm.streams.list()) {
    for await (const consumer of jsm.consumers.list(config.name)) if (!consumer.config.inactive_threshold) consumers.push(`${config.name} ${consumer.name}`);
  }
  const subjectsIn = async (stream: string): Promise<string[]> =>
    Object.keys((await jsm.streams.info(stream, { subjects_filter: ">" }).catch(() => undefined))?.state.subjects ?? {});
  // A deleted entry leaves a message that says so.
  const isThere = async (stream: string, subject: string): Promise<boolean> =>
    !(await jsm.streams.getMessage(stream, { last_by_subj: subject }))?.header.has("KV-Operation");
  const entries = async (bucket: Bucket): Promise<string[]> => {
    const stream = bucketStream(bucket);
    const found = await Promise.all((await subjectsIn(stream)).map(async (subject) => ((await isThere(stream, subject)) ? [subject] : [])));
    return found.flat();
  };
  return {
    consumers,
    "entries of sandboxes": await entries(buckets.sandboxes),
    "entries of snapshots": await entries(buckets.snapshots),
    "stored layers": await subjectsIn(layerSubjects.stream),
  };
}

/** Items that are there more often than before. No sandbox is there both times, so only containers that wait for one have ids, each time others. */
function added(before: readonly string[] = [], now: readonly string[]): string[] {
  const rest = before.map(withoutId);
  return now.filter((item) => {
    const index = rest.indexOf(withoutId(item));
    if (index >= 0) rest.splice(index, 1);
    return index < 0;
  });
}

const withoutId = (item: string): string => item.replace(/\bsb_[0-9a-z]+/g, "sb_");
