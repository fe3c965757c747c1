/** A worker as its heartbeats describe it. */
import type { WorkerPresence } from "../../shared/bus/heartbeat.ts";

export const GiB = 1024 ** 3;

/** An idle worker with room for sandboxes, except for what `changes` says. */
export const presentWorker = (id: string, changes: Partial<WorkerPresence> = {}): { peer: string; worker: WorkerPresence } => ({
  peer: `peer-${id}`,
  worker: {
    id,
    draining: false,
    sandboxes: 0,
    sandboxes_max: 10,
    executions: 0,
    executions_total: 0,
    memory_free_bytes: 8 * GiB,
    disk_free_bytes: 100 * GiB,
    load_per_cpu: 0,
    rss_bytes: 0,
    accepts: true,
    host: [],
    ...changes,
  },
});
