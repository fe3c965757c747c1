/** Builds a worker in layers: each builder uses what the ones above it have built. */
import { mkdirSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { workerAccess } from "../shared/bus/connect.ts";
import { type Manifest, SandboxEntry, SnapshotEntry } from "../shared/bus/entries.ts";
import { Bus } from "../shared/bus/nats.ts";
import { PeerWatch } from "../shared/bus/presence.ts";
import { imageOfLayer, layersOf, memoryOfLayer } from "../shared/bus/snapshot-layers.ts";
import { untilStorageIsThere } from "../shared/bus/storage.ts";
import { buckets, peers as names } from "../shared/bus/subjects.ts";
import type { Config } from "../shared/config.ts";
import type { Isolation } from "../shared/schemas/sandboxes.ts";
import { checker } from "../shared/schemas/validate.ts";
import { StreamHub } from "../shared/stream/hub.ts";
import { newId } from "../shared/util/ids.ts";
import type { Logger } from "../shared/util/log.ts";
import type { Shutdown } from "../shared/util/shutdown.ts";
import { Claim } from "./claim.ts";
import { Counters } from "./counters.ts";
import type { Home } from "./identity.ts";
import { Images } from "./images/images.ts";
import type { LogLimits } from "./log/execution-log.ts";
import { type Container, runtimeOf } from "./runtime/container/container.ts";
import { Copies } from "./runtime/container/copies.ts";
import { OciRuntime } from "./runtime/container/oci.ts";
import { OwnFiles } from "./runtime/container/own-files.ts";
import { SeccompFilter } from "./runtime/container/seccomp-filter.ts";
import { MeetingPlaces } from "./runtime/exec-server/meeting-places.ts";
import { Reserve } from "./runtime/filesystem/reserve.ts";
import type { Host } from "./runtime/host/host.ts";
import { openIds } from "./runtime/ids/open.ts";
import { openContainerStore } from "./runtime/podman/container-store.ts";
import { Podman } from "./runtime/podman/containers.ts";
import { PodmanImages } from "./runtime/podman/images.ts";
import { ImagePull } from "./runtime/podman/pull.ts";
import { PodmanService } from "./runtime/podman/service.ts";
import { PrivilegedHelper } from "./runtime/privileged/helper.ts";
import { Folders } from "./runtime/storage/folders.ts";
import { Storages } from "./runtime/storage/storages.ts";
import { Subvolumes } from "./runtime/storage/subvolumes.ts";
import { roomFor } from "./sandboxes/demand.ts";
import { Isolator } from "./sandboxes/isolator.ts";
import { Launcher, startSlots } from "./sandboxes/launcher.ts";
import { SandboxLifecycle } from "./sandboxes/lifecycle.ts";
import { Networks } from "./sandboxes/networks.ts";
import { WarmPool } from "./sandboxes/pool.ts";
import { type LiveSandbox, Sandboxes } from "./sandboxes/registry.ts";
import { Removal } from "./sandboxes/removal.ts";
import { Roots } from "./sandboxes/roots.ts";
import { Sessions } from "./sessions/sessions.ts";
import { LayerArchive } from "./snapshots/archive.ts";
import { Increments } from "./snapshots/increments.ts";
import { imagesNeeded, Layers, layerUsers } from "./snapshots/layers.ts";
import { type MemoryImages, memoryInUse, noMemoryImages } from "./snapshots/memory.ts";
import { tellCopied } from "./snapshots/notice.ts";
import { ProcessImages, whyNot } from "./snapshots/processes.ts";
import { Snapshots } from "./snapshots/registry.ts";
import { Replicator } from "./snapshots/replicator.ts";
import { MemoryTransfers } from "./snapshots/transfers.ts";
import type { StallWatch } from "./stall.ts";
import { OwnEntries } from "./store/entries.ts";
import { openStore } from "./store/open.ts";
import { rebuildRecords } from "./store/rebuild.ts";
import { Urgent } from "./urgent.ts";
import { Disks } from "./usage/disks.ts";
import { UsageMonitor } from "./usage/monitor.ts";

/** The longest that a piece of an archive waits for starts and snapshots, which always leaves a rate of 1 MiB a second. */
const archiveWaitMsMax = 500;

/** What everything else is built on. */
export interface Ground {
  readonly config: Config;
  readonly log: Logger;
  readonly shutdown: Shutdown;
  readonly workerId: string;
  readonly home: Home;
  /** The worker's own folder. */
  readonly dataDir: string;
  readonly host: Host;
  readonly stalls: StallWatch;
}

/** Opens the records on disk. Done before the connections, so that the records are closed after them. */
export async function openDisk({ config, log, shutdown, workerId, dataDir }: Ground) {
  const disks = new Disks(config, log);
  const limits: LogLimits = {
    sandboxBytes: config.logBytesPerSandbox,
    accountBytes: config.logBytesPerAccount,
    hasRoom: () => disks.shortage() === undefined,
  };
  const { store, isLost, settled } = await openStore(join(dataDir, "lmdb"), log, limits, join(config.runtimeDir, workerId, "log"));
  shutdown.onStop("store", () => store.close());
  return { disks, store, isLost, settled };
}

/**
 * Connects to NATS: one connection for calls, one for the directory, and one for bulk data, which must not delay the others.
 * Claims the worker's id.
 *
 * @throws {ClaimRefused}
 */
export async function connect({ config, log, shutdown, workerId, home, stalls }: Ground) {
  const access = workerAccess(config, workerId);
  const open = async (purpose: "worker" | "storage" | "archive"): Promise<Bus> => {
    const bus = await Bus.connect(config.natsUrl, `sandgate-${purpose}-${workerId}`, log, purpose === "worker" ? access.calls : access.storage);
    shutdown.onStop(`bus (${purpose})`, () => bus.close());
    return bus;
  };
  const [bus, storage, bulk] = [await open("worker"), await open("storage"), await open("archive")];
  await untilStorageIsThere(storage, log);
  const peers = new PeerWatch(bus, names.worker(workerId, newId("worker")), log);
  const claim = await Claim.take(storage, { workerId, home, peer: peers.peer, stalls });
  const hub = new StreamHub(bus, peers, log, config.streamWindowsBytesMax);
  shutdown.onStop("lines", () => hub.lines.close());
  return { bus, storage, bulk, peers, claim, hub };
}

type Buses = Awaited<ReturnType<typeof connect>>;
type Disk = Awaited<ReturnType<typeof openDisk>>;

/** Loads sandboxes and snapshots from their records, and opens their directory entries, from which damaged records are rebuilt. */
export async function openRecords({ log, workerId }: Ground, disk: Disk, { storage: bus, claim }: Pick<Buses, "storage" | "claim">) {
  const { store, isLost } = disk;
  const parts = { bus, workerId, claim, log };
  const entries = {
    sandboxes: await OwnEntries.open(buckets.sandboxes, checker(SandboxEntry), parts),
    snapshots: await OwnEntries.open(buckets.snapshots, checker(SnapshotEntry), parts),
  };
  if (isLost) await rebuildRecords({ ...entries, store, log });
  store.removeStrayFacts();
  const isDirectoryUnsure = (): boolean => entries.sandboxes.areUnsure || entries.snapshots.areUnsure;
  return { ...disk, sandboxes: new Sandboxes(store, entries.sandboxes), snapshots: new Snapshots(store, entries.snapshots), isDirectoryUnsure };
}

/** Opens the interfaces to this host's containers. */
export async function openRuntime(ground: Ground) {
  const { config, log, shutdown, workerId, dataDir, host } = ground;
  const scratch = join(config.runtimeDir, workerId);
  mkdirSync(scratch, { recursive: true, mode: 0o700 });
  const copies = new Copies(join(scratch, "copies"));
  const oci = new OciRuntime(host, scratch, copies);
  const reserve = new Reserve([dataDir, config.storageDir], log);
  await reserve.fill();
  const store = openContainerStore(scratch, host.podmanRunDir);
  const serviceFor = (what: Isolation | "images"): PodmanService => {
    const service = new PodmanService(join(scratch, what, "podman"), what === "images" ? {} : { runtime: runtimeOf(host, what), store });
    shutdown.onStop(`podman's service for ${what}`, () => service.close());
    return service;
  };
  const services = { standard: serviceFor("standard"), strong: serviceFor("strong"), images: serviceFor("images") };
  const meetings = new MeetingPlaces(join(scratch, "meeting"));
  const own = new OwnFiles(join(scratch, "own"));
  const filter = new SeccompFilter(host);
  const podman = new Podman({ config, host, workerId, meetings, own, filter, copies, store, services });
  return { oci, podman, filter, meetings, own, copies, imageStore: new PodmanImages(services.images), reserve, urgent: new Urgent() };
}

/** Opens where the files of sandboxes lie, and the connection that it needs for that. */
export async function openStorages({ config, shutdown, workerId, dataDir }: Ground) {
  const helper = config.helper ? PrivilegedHelper.at(config.helper) : undefined;
  if (helper) shutdown.onStop("privileged helper", () => helper.close());
  const volume = config.volumeDir ? await Subvolumes.open(join(config.volumeDir, workerId), helper) : undefined;
  return { helper, storages: new Storages(new Folders(dataDir), volume), ids: await openIds({ config, workerId, helper, volume }) };
}

type Records = Awaited<ReturnType<typeof openRecords>>;
type Runtime = Awaited<ReturnType<typeof openRuntime>>;
type Stored = Awaited<ReturnType<typeof openStorages>>;

/** Opens what sandbox files are made from: images, snapshot layers, and the archive of both. @param signal aborts fetching layers */
export async function openFiles(ground: Ground, bulk: Bus, records: Records, runtime: Runtime, stored: Stored, signal: AbortSignal) {
  const { config, log, shutdown, workerId } = ground;
  const { sandboxes, snapshots } = records;
  const { storages, ids } = stored;
  const { imageStore: store, urgent } = runtime;
  const layers = await Layers.open(storages, log);
  const archive = await LayerArchive.open(bulk, workerId, log);
  const mounted = new Map<string, string>();
  const scratch = join(config.runtimeDir, workerId, "mounting");
  // An earlier process may have left something. Later on, sandboxes are mounted with what is in there.
  await rm(scratch, { recursive: true, force: true });
  const needed = (): Set<string> => imagesNeeded({ sandboxes, snapshots, mounted, inArchive: config.snapshotArchiveImages });
  const images = new Images({ config, store, puller: new ImagePull(config, ground.host, workerId), workerId, log, needed });
  const neededFor = (manifest: Pick<Manifest, "layers" | "base">) => (config.snapshotArchiveImages ? layersOf(manifest) : manifest.layers);
  const increments = new Increments({ snapshots, layers, archive, neededFor, log });
  const memory: MemoryImages = await openMemory(ground, runtime, stored, { archive, signal });
  const replicator = new Replicator({
    ...{ archive, bus: bulk, log, bytesPerS: config.snapshotArchiveBytesPerS },
    giveWay: (until) => urgent.whenQuiet(archiveWaitMsMax, until),
    isThere: (id) => snapshots.get(id)?.status === "ready",
    layersOf: ({ manifest }) => [...(manifest.memory_image ? [manifest.memory_image] : []), ...neededFor(manifest)],
    storeDifference: (id, store) => increments.store(id, store),
    sourceOf: async (id) => {
      const processes = memoryOfLayer(id);
      if (processes !== undefined) return (until) => memory.pack(processes, until);
      const image = imageOfLayer(id);
      return image === undefined || layers.has(id) ? layers.dirOf(id) : store.folder(image);
    },
    onDone: (id) => snapshots.noteStored(id),
  });
  shutdown.onStop("replicator", () => replicator.stop());
  return {
    ...{ layers, archive, images, replicator, memory },
    roots: new Roots({ storages, ids, images, layers, archive, mounted, scratch, signal }),
    /** Removes the layers and images of memory of this worker that no snapshot and no sandbox needs. */
    collectLayers: async (): Promise<void> => {
      await layers.collect(() => layerUsers(snapshots, sandboxes));
      await memory.collect(() => memoryInUse(snapshots, sandboxes));
    },
  };
}

type Files = Awaited<ReturnType<typeof openFiles>>;

/** From where images of other workers come. */
interface Fetching {
  readonly archive: LayerArchive;
  readonly signal: AbortSignal;
}

/** What this worker can do about the memory of sandboxes. It has a connection of its own, since requests on one wait for each other. */
async function openMemory(
  { config, host, log, shutdown, dataDir }: Ground,
  { oci, podman, copies }: Runtime,
  { ids }: Stored,
  fetching: Fetching,
): Promise<MemoryImages> {
  const helper = config.helper.startsWith("/") ? PrivilegedHelper.at(config.helper) : undefined;
  const why = await whyNot(host, helper, ids.areGiven);
  if (why !== undefined || !helper) {
    helper?.close();
    return noMemoryImages(why ?? "this worker has no helper");
  }
  shutdown.onStop("privileged helper for memory", () => helper.close());
  const transfers = new MemoryTransfers(config.helper);
  return new ProcessImages({ ...fetching, transfers, helper, host, oci, podman, copies, log, dir: join(dataDir, "memory"), floorBytes: config.diskFloorBytes });
}

/** Builds what creates sandboxes, watches them, and runs commands in them. @param isServing whether the worker takes calls */
export function makeSandboxes(
  ground: Ground,
  hub: StreamHub,
  parts: { records: Records; runtime: Runtime; stored: Stored; files: Files },
  isServing: () => boolean,
) {
  const { records, runtime, stored, files } = parts;
  const { config, log } = ground;
  const { store, sandboxes, disks } = records;
  const counters = new Counters();
  const networks = new Networks({ ...ground, sandboxes, memory: files.memory });
  const sessions = new Sessions({ config, hub, store, log, counters });
  const onCopied = (sandbox: LiveSandbox, container: Container, image: number): void => {
    tellCopied(container, sandbox.record.env_vars);
    sessions.goOn(sandbox, files.memory.sessionsIn(image), ({ keeper, terminal }, onTaken) => runtime.oci.takeOver(container, keeper, terminal, onTaken));
  };
  const built = { ...ground, ...records, ...runtime, ...files, ...stored, slots: startSlots(config) };
  const isolator = new Isolator({ ...built, networks });
  const removal = new Removal(built);
  const launcher = new Launcher({ ...built, isolator, removal });
  const lifecycle = new SandboxLifecycle({ ...built, isolator, removal, launcher, onCopied });
  const usage = new UsageMonitor({
    ...ground,
    ...stored,
    disks,
    sandboxes,
    store,
    onLost: (sandbox) => lifecycle.restartLost(sandbox),
    onRunning: (sandbox) => networks.mend(sandbox),
    serverIn: (container) => runtime.oci.serverIn(container),
  });
  const roomInPool = (waiting: number): number => {
    if (usage.diskShortage() || usage.host.memoryFreeBytes < config.memoryFloorBytes) return 0;
    return Math.min(roomFor(waiting, usage.host.memoryFreeBytes, config.memoryFloorBytes), config.sandboxesMax - sandboxes.size);
  };
  const pool = new WarmPool({
    ...{ config, counters, log },
    launch: (spec) => launcher.launchEmpty(spec),
    furnish: (container, spec, image) => launcher.furnish(container, spec, image),
    remove: (sandboxId) => removal.remove(sandboxId),
    isPossible: ground.host.execServer !== undefined,
    isServing,
    roomFor: roomInPool,
    isUrgent: () => runtime.urgent.isRunning,
  });
  files.images.onShort(() => pool.letGo());
  return { counters, lifecycle, usage, pool, sessions };
}
