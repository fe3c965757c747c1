/** What this worker reports to the gateways with every heartbeat. */
import { imageKeysMax, type Presence } from "../shared/bus/heartbeat.ts";
import type { WorkerContext } from "./context.ts";

export function describeWorker({
  config,
  workerId,
  claim,
  host,
  ids,
  images,
  sandboxes,
  sessions,
  store,
  usage,
  counters,
  pool,
  replicator,
  phase,
}: WorkerContext): Omit<Presence, "peer" | "host"> {
  const hasRoom = sandboxes.size < config.sandboxesMax && usage.host.memoryFreeBytes >= config.memoryFloorBytes;
  return {
    worker: {
      id: workerId,
      epoch: claim.epoch,
      draining: !phase.isServing,
      ...(store.cordoned ? { cordoned: true } : {}),
      ...(host.hasStrong ? { strong: true } : {}),
      accepts: phase.isServing && !store.cordoned && hasRoom,
      ...(usage.diskShortage() === undefined ? {} : { disk_full: true }),
      images: images.keys.slice(0, imageKeysMax),
      sandboxes: sandboxes.size,
      sandboxes_max: config.sandboxesMax,
      executions: sandboxes.activities,
      executions_total: counters.executions,
      sessions: sessions.running,
      sessions_total: counters.sessions,
      memory_free_bytes: usage.host.memoryFreeBytes,
      disk_free_bytes: usage.host.diskFreeBytes,
      load_per_cpu: usage.host.loadPerCpu,
      snapshots: {
        taken: counters.snapshots,
        pause_ms_total: counters.pauses.sum * 1_000,
        pause_ms_max: counters.pauseMsMax,
        archive_pending_bytes: replicator.pendingBytes,
      },
      metrics: counters.metrics(pool.size),
      rss_bytes: process.memoryUsage.rss(),
      host: [...host.checks, ids.check],
    },
  };
}
