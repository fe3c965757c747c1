/** Which worker gets a new sandbox. */
import type { WorkerPresence } from "../shared/schemas/messages.ts";
import type { WorkerRef } from "./dispatch.ts";

/** Workers that accept sandboxes, best first: most free memory for each sandbox it would then have, least load. */
export function rankWorkers(workers: readonly { peer: string; worker: WorkerPresence }[]): WorkerRef[] {
  const score = ({ memory_free_bytes, sandboxes, load_per_cpu }: WorkerPresence): number => memory_free_bytes / (sandboxes + 1) / (1 + load_per_cpu);
  return workers
    .filter(({ worker }) => worker.accepts)
    .sort((a, b) => score(b.worker) - score(a.worker))
    .map(({ peer, worker }) => ({ id: worker.id, peer }));
}
