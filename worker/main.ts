/** Starts a worker: probe the host, open the store, make records and containers agree, then answer calls. */
import { mkdirSync } from "node:fs";
import { flushCompileCache } from "node:module";
import { join } from "node:path";
import { workerAccess } from "../shared/bus/access.ts";
import { SandboxEntry, SnapshotEntry } from "../shared/bus/messages.ts";
import { Bus } from "../shared/bus/nats.ts";
import { PeerWatch } from "../shared/bus/presence.ts";
import { imageOfLayer, layersOf } from "../shared/bus/snapshot-layers.ts";
import { untilStorageIsThere } from "../shared/bus/storage.ts";
import { buckets, peers as names } from "../shared/bus/subjects.ts";
import { ConfigError, loadConfig, markPrograms } from "../shared/config.ts";
import { SandgateError } from "../shared/errors.ts";
import { checker } from "../shared/schemas/validate.ts";
import { StreamHub } from "../shared/stream/hub.ts";
import { watchUncaught } from "../shared/util/background.ts";
import { newId } from "../shared/util/ids.ts";
import { Lifecycle, stopOnRequest } from "../shared/util/lifecycle.ts";
import { createLogger } from "../shared/util/log.ts";
import type { WorkerContext } from "./context.ts";
import { Counters } from "./counters.ts";
import { drain } from "./drain.ts";
import { armFaults } from "./faults.ts";
import { workerIdentity } from "./identity.ts";
import { Images } from "./images/images.ts";
import { imagesNeeded } from "./images/needed.ts";
import { describeWorker } from "./presence.ts";
import { OciRuntime } from "./runtime/container/oci.ts";
import { FilesystemDriver } from "./runtime/container/snapshot-driver.ts";
import { Reserve } from "./runtime/filesystem/reserve.ts";
import { HostUnfit } from "./runtime/host/host.ts";
import { probeHost } from "./runtime/host/probe.ts";
import { untilAbandonedEnd } from "./runtime/podman/abandoned.ts";
import { Podman } from "./runtime/podman/containers.ts";
import { PodmanImages } from "./runtime/podman/images.ts";
import { ImagePull } from "./runtime/podman/pull.ts";
import { UnfinishedDeletions } from "./sandboxes/deletions.ts";
import { SandboxLifecycle } from "./sandboxes/lifecycle.ts";
import { WarmPool } from "./sandboxes/pool.ts";
import { catchUp, reconcile } from "./sandboxes/reconcile.ts";
import { Sandboxes } from "./sandboxes/registry.ts";
import { Roots } from "./sandboxes/roots.ts";
import { serve } from "./serve.ts";
import { Sessions } from "./sessions/sessions.ts";
import { LayerArchive } from "./snapshots/archive.ts";
import { Layers, layersInUse } from "./snapshots/layers.ts";
import { reconcileSnapshots, thawSources } from "./snapshots/reconcile.ts";
import { Snapshots } from "./snapshots/registry.ts";
import { Replicator } from "./snapshots/replicator.ts";
import { StallWatch } from "./stall.ts";
import { OwnEntries } from "./store/entries.ts";
import { openStore } from "./store/open.ts";
import { rebuildRecords } from "./store/rebuild.ts";
import { Urgent } from "./urgent.ts";
import { UsageMonitor } from "./usage/monitor.ts";

/** EX_CONFIG of sysexits.h: starting again would fail in the same way. */
const exitConfig = 78;
/** How long a piece of an archive waits for starts and snapshots; the rate that is always left is 1 MiB a second. */
const archiveWaitMsMax = 500;

async function main(): Promise<void> {
  const config = loadConfig();
  const log = createLogger("worker", config.logLevel);
  watchUncaught(log, (code) => process.exit(code));
  armFaults(config.testFault);
  const lifecycle = new Lifecycle(log);
  stopOnRequest(lifecycle, (code) => process.exit(code));

  const dataDir = join(config.dataDir, "worker");
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const workerId = workerIdentity(config, dataDir);
  markPrograms(workerId);
  const host = await probeHost(config);
  lifecycle.onStop("CPU groups", () => host.cpuGroups?.sweep());
  const { store, isLost, settled } = await openStore(join(dataDir, "lmdb"), log, {
    sandboxBytes: config.logBytesPerSandbox,
    accountBytes: config.logBytesPerAccount,
  });
  lifecycle.onStop("store", () => store.close());
  const access = workerAccess(config, workerId);
  const bus = await Bus.connect(config.natsUrl, `sandgate-worker-${workerId}`, log, access.calls);
  lifecycle.onStop("bus", () => bus.close());
  const storage = await Bus.connect(config.natsUrl, `sandgate-storage-${workerId}`, log, access.storage);
  lifecycle.onStop("storage", () => storage.close());
  await untilStorageIsThere(storage, log);

  const scratch = join(config.runtimeDir, workerId);
  mkdirSync(scratch, { recursive: true, mode: 0o700 });
  const oci = new OciRuntime(host, scratch);
  const podman = new Podman(config, host);
  const imageStore = new PodmanImages();
  const entries = {
    sandboxes: await OwnEntries.open(storage, buckets.sandboxes, workerId, checker(SandboxEntry), log),
    snapshots: await OwnEntries.open(storage, buckets.snapshots, workerId, checker(SnapshotEntry), log),
  };
  if (isLost) await rebuildRecords({ ...entries, store, log });
  const sandboxes = new Sandboxes(store, entries.sandboxes);
  const snapshots = new Snapshots(store, entries.snapshots);
  const reserve = new Reserve([dataDir, config.storageDir], log);
  await reserve.fill();
  const layers = await Layers.open(join(dataDir, "layers"), log);
  const collectLayers = (): Promise<void> => layers.collect(() => layersInUse(snapshots, sandboxes));
  // On a connection of its own, so that bulk does not stand in the way of calls.
  const archiveBus = await Bus.connect(config.natsUrl, `sandgate-archive-${workerId}`, log, access.storage);
  lifecycle.onStop("archive bus", () => archiveBus.close());
  const archive = await LayerArchive.open(archiveBus, workerId, log);
  const stopping = new AbortController();
  const puller = new ImagePull(config, host, workerId);
  const needed = (): Set<string> => imagesNeeded({ sandboxes, snapshots, roots, inArchive: config.snapshotArchiveImages });
  const images = new Images({ config, store: imageStore, puller, workerId, log, needed });
  const roots = new Roots(join(dataDir, "roots"), { images, layers, archive, signal: stopping.signal });
  const urgent = new Urgent();
  const replicator = new Replicator({
    ...{ archive, bus: archiveBus, log, bytesPerS: config.snapshotArchiveBytesPerS },
    giveWay: (signal) => urgent.whenQuiet(archiveWaitMsMax, signal),
    layersOf: ({ manifest }) => (config.snapshotArchiveImages ? layersOf(manifest) : manifest.layers),
    dirOf: async (id) => {
      const image = imageOfLayer(id);
      return image === undefined || layers.has(id) ? layers.dirOf(id) : imageStore.folder(image);
    },
    onDone: (id) => snapshots.noteStored(id),
  });
  lifecycle.onStop("replicator", () => replicator.stop());
  const sandboxLifecycle = new SandboxLifecycle({
    sandboxes,
    podman,
    images,
    roots,
    oci,
    host,
    log,
    workerId,
    atOnce: config.createsAtOnce,
    urgent,
    reserve,
    collectLayers,
  });
  const usage = new UsageMonitor({ config, host, sandboxes, store, log, onLost: (sandbox) => sandboxLifecycle.restartLost(sandbox) });
  store.log.hasRoom = () => usage.diskShortage() === undefined;
  const counters = new Counters();
  const pool = new WarmPool({ config, counters, podman, log, launch: (spec) => sandboxLifecycle.launch(spec), mayFill: () => mayPrepare(context) });

  const peers = new PeerWatch(bus, names.worker(workerId, newId("worker")), log, () => describeWorker(context));
  const hub = new StreamHub(bus, peers, log);
  const context: WorkerContext = {
    config,
    workerId,
    host,
    log,
    bus,
    store,
    hub,
    oci,
    sandboxes,
    sessions: new Sessions({ config, hub, store, log, counters }),
    lifecycle: sandboxLifecycle,
    pool,
    usage,
    podman,
    imageStore,
    images,
    reserve,
    driver: new FilesystemDriver(oci),
    layers,
    snapshots,
    archive,
    replicator,
    collectLayers,
    peers,
    stalls: new StallWatch(),
    urgent,
    counters,
    draining: true,
  };
  const parts = { sandboxes, lifecycle: sandboxLifecycle, podman, oci, store, log, workerId };
  const snapshotParts = { snapshots, replicator, collectLayers, podman, oci, workerId, log };
  const killed = await untilAbandonedEnd(workerId);
  if (killed > 0) log.warn({ event: "programs_killed", programs: killed }, "podman commands of the last process did not end and were killed");
  await thawSources(snapshotParts);
  await images.start();
  await reconcile(parts);
  settled();
  await roots.removeStrays((id) => sandboxes.knows(id));
  await reconcileSnapshots(snapshotParts);
  const deletions = new UnfinishedDeletions({ sandboxes, snapshots, lifecycle: sandboxLifecycle, reserve, collectLayers, log });
  deletions.start();
  lifecycle.onStop("deletions", () => deletions.stop());
  await usage.start();
  lifecycle.onStop("usage", () => usage.stop());
  storage.onRestored(() => catchUp(parts).then(() => reconcileSnapshots(snapshotParts)));
  serve(bus, context);
  lifecycle.onStop("presence", () => peers.leave());
  lifecycle.onStop("drain", async () => {
    await drain(context, peers);
    stopping.abort(new SandgateError("unavailable", "the worker is shutting down"));
  });
  context.draining = false;
  pool.start();
  peers.start();
  // Calls reach this process from here on. Without a connection they do so as soon as there is one.
  await bus.whileConnected(() => bus.connection.flush()).catch((err) => log.debug({ err }, "the bus is away"));
  log.info({ event: "ready", worker: workerId, peer: peers.peer, host: { checks: host.checks } }, "the worker is ready");
  // What was compiled for this start is there for the next one, also when this process is killed.
  flushCompileCache();
}

/** Whether the host has twice the memory that a call must leave free, and room beside the sandboxes. */
function mayPrepare({ config, usage, sandboxes, pool, draining }: WorkerContext): boolean {
  const hasRoom = usage.host.memoryFreeBytes > 2 * config.memoryFloorBytes && !usage.diskShortage() && sandboxes.size + pool.size < config.sandboxesMax;
  return !draining && hasRoom;
}

main().catch((error: unknown) => {
  const log = createLogger("worker", "info");
  const isFinal = error instanceof ConfigError || error instanceof HostUnfit;
  if (isFinal) log.fatal({ event: "config" }, error.message);
  else log.fatal({ err: error, cause: error instanceof SandgateError ? error.cause : undefined }, "the worker could not start");
  process.exit(isFinal ? exitConfig : 1);
});
