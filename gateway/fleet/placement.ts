/** Chooses the worker for a new sandbox. */

import type { SnapshotEntry } from "../../shared/bus/entries.ts";
import type { WorkerPresence } from "../../shared/bus/heartbeat.ts";
import { processOfWorker } from "../../shared/bus/subjects.ts";
import { SandgateError } from "../../shared/errors.ts";
import { errors } from "../../shared/known-errors.ts";
import type { Isolation } from "../../shared/schemas/sandboxes.ts";
import type { ArchiveState } from "../../shared/state/snapshot.ts";

export interface WorkerRef {
  readonly id: string;
  /** The worker's process, which streams belong to. */
  readonly peer: string;
  /** Under which name it is called. */
  readonly name: string;
}

export interface PresentWorker {
  readonly peer: string;
  readonly worker: WorkerPresence;
}

/** A worker as calls reach it. */
export function refOf({ peer, worker: { id, epoch } }: PresentWorker): WorkerRef {
  return { id, peer, name: epoch === undefined ? id : processOfWorker(peer) };
}

const notArchived: Readonly<Record<Exclude<ArchiveState, "done">, string>> = {
  pending: "archived yet",
  local: "archived, by a setting of this installation",
};

/** The workers that can isolate a sandbox like this. @throws {SandgateError} `unprocessable` when workers are there, but none can. */
export function ableOf(workers: readonly PresentWorker[], isolation: Isolation): readonly PresentWorker[] {
  const able = workers.filter(({ worker }) => isolation === "standard" || worker.strong);
  if (able.length === 0 && workers.length > 0) throw errors.noStrongWorker();
  return able;
}

/** Workers that accept sandboxes, best first: by free memory per sandbox, counting the new one, and by load. */
export function rankWorkers(workers: readonly PresentWorker[]): WorkerRef[] {
  const score = ({ memory_free_bytes, sandboxes, load_per_cpu }: WorkerPresence): number => memory_free_bytes / (sandboxes + 1) / (1 + load_per_cpu);
  return workers
    .filter(({ worker }) => worker.accepts)
    .sort((a, b) => score(b.worker) - score(a.worker))
    .map(refOf);
}

/**
 * Workers that can restore a snapshot, best first: the worker that took it has its layers; any other must copy them from
 * the object store.
 *
 * @throws {SandgateError} `unavailable` with the reason when there is none
 */
export function workersFor({ worker_id, archived }: Pick<SnapshotEntry, "worker_id" | "archived">, workers: readonly PresentWorker[]): WorkerRef[] {
  const isOwner = ({ worker }: PresentWorker): boolean => worker.id === worker_id;
  const own = rankWorkers(workers.filter(isOwner));
  const others = archived === "done" ? rankWorkers(workers.filter((one) => !isOwner(one))) : [];
  if (own.length + others.length > 0) return [...own, ...others];
  throw onlyItsOwn(archived, workers.some(isOwner) ? "has no room for another sandbox" : "is gone or restarting");
}

/** The error when the worker that took a snapshot cannot restore it, and no other worker can. */
export function onlyItsOwn(archived: ArchiveState, state: "has no room for another sandbox" | "is gone or restarting"): SandgateError {
  const rest = archived === "done" ? "no other worker has room for another sandbox" : `the snapshot is not ${notArchived[archived]}`;
  return new SandgateError("unavailable", `the worker that took this snapshot ${state}, and ${rest}`);
}
