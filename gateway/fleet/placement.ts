/** Chooses the worker for a new sandbox. */
import { hash } from "node:crypto";
import type { SnapshotEntry } from "../../shared/bus/entries.ts";
import type { WorkerPresence } from "../../shared/bus/heartbeat.ts";
import { processOfWorker } from "../../shared/bus/subjects.ts";
import { SandgateError } from "../../shared/errors.ts";
import { errors } from "../../shared/known-errors.ts";
import type { Isolation } from "../../shared/schemas/sandboxes.ts";
import type { ArchiveState } from "../../shared/state/snapshot.ts";
import { defaultImageWord, keyOfName, type LocalImages, localRegistry, nameOf, wantedImage } from "../../shared/util/image.ts";

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

/** Which workers can have what a sandbox is to be made from: those that the archive serves, or for a further reason only the one that took it. */
export type Reach = ArchiveState | "memory" | "temporary";

const onlyThere: Readonly<Record<Exclude<Reach, "done">, string>> = {
  pending: "the snapshot is not archived yet",
  local: "the snapshot is not archived, by a setting of this installation",
  temporary: "copies are made where their source is",
  memory: "no other worker has the memory of the snapshot",
};

/** The workers that can isolate a sandbox like this. @throws {SandgateError} `unprocessable` when workers are there, but none can. */
export function ableOf(workers: readonly PresentWorker[], isolation: Isolation): readonly PresentWorker[] {
  const able = workers.filter(({ worker }) => isolation === "standard" || worker.strong);
  if (able.length === 0 && workers.length > 0) throw errors.noStrongWorker();
  return able;
}

/** A new sandbox, as far as the choice of its worker depends on it. */
export interface Wanted {
  readonly memoryBytes: number;
  /** Undefined for the installation's own, which every worker has. */
  readonly image: { readonly key: string; readonly isLocal: boolean } | undefined;
  /** Another one for each sandbox, so that gateways that know the same do not all choose the same worker. */
  readonly seed: string;
}

/** The image that a caller names. @throws {SandgateError} `unprocessable` for one that is not allowed any more */
export function imageWanted(text: string, images: LocalImages): Wanted["image"] {
  const wanted = wantedImage(text, images);
  return wanted === defaultImageWord ? undefined : { key: keyOfName(nameOf(wanted)), isLocal: wanted.registry === localRegistry };
}

/** What went to workers since they last told about themselves, so that many sandboxes wanted within a second do not all go to one. */
export class Placements {
  readonly #since = new WeakMap<WorkerPresence, { readonly sandboxes: number; readonly bytes: number }>();

  of(worker: WorkerPresence): { readonly sandboxes: number; readonly bytes: number } {
    return this.#since.get(worker) ?? { sandboxes: 0, bytes: 0 };
  }

  note(worker: WorkerPresence, { memoryBytes }: Wanted): void {
    const { sandboxes, bytes } = this.of(worker);
    this.#since.set(worker, { sandboxes: sandboxes + 1, bytes: bytes + memoryBytes });
  }
}

/** How much less room a worker may have than others and still get a sandbox whose image it need not pull. */
const localityFactor = 8;
/** Workers whose room differs by no more than this part are about equal. */
const aboutEqual = 0.1;

/**
 * Workers that accept sandboxes, best first. A local image can only be on some; workers without disk space or enough memory come
 * last; the others by free memory per sandbox, counting the new one, by load, and by whether they have its image.
 */
export function rankWorkers(workers: readonly PresentWorker[], wanted: Wanted, placements = new Placements()): PresentWorker[] {
  const ranked = workers
    .filter(({ worker }) => worker.accepts)
    .map((one) => {
      const placed = placements.of(one.worker);
      const { memory_free_bytes, disk_full = false, sandboxes, load_per_cpu, images = [] } = one.worker;
      const bytes = memory_free_bytes - placed.bytes;
      const hasImage = wanted.image !== undefined && images.includes(wanted.image.key);
      const room = Math.max(bytes, 0) / (sandboxes + placed.sandboxes + 1) / (1 + load_per_cpu);
      const score = room * (hasImage ? localityFactor : 1) * (1 + aboutEqual * fractionOf(`${wanted.seed} ${one.worker.id}`));
      const rank = 4 * Number(hasImage && wanted.image?.isLocal) + 2 * Number(!disk_full) + Number(bytes >= wanted.memoryBytes);
      return { one, rank, score };
    });
  return ranked.sort((a, b) => b.rank - a.rank || b.score - a.score).map(({ one }) => one);
}

/** A number from 0 to 1 that looks random. */
const fractionOf = (text: string): number => Number.parseInt(hash("sha256", text).slice(0, 8), 16) / 2 ** 32;

/** A snapshot, as far as the choice of a worker depends on it. */
export interface Restorable extends Pick<SnapshotEntry, "worker_id"> {
  readonly reach: Reach;
}

/**
 * Workers that can restore a snapshot, best first: the worker that took it has its layers; any other must copy them from
 * the object store.
 *
 * @throws {SandgateError} `unavailable` with the reason when there is none
 */
export function workersFor({ worker_id, reach }: Restorable, workers: readonly PresentWorker[], wanted: Wanted, placements?: Placements): PresentWorker[] {
  const isOwner = ({ worker }: PresentWorker): boolean => worker.id === worker_id;
  const own = rankWorkers(workers.filter(isOwner), wanted, placements);
  const others =
    reach === "done"
      ? rankWorkers(
          workers.filter((one) => !isOwner(one)),
          wanted,
          placements,
        )
      : [];
  if (own.length + others.length > 0) return [...own, ...others];
  throw onlyItsOwn(reach, workers.some(isOwner) ? "has no room for another sandbox" : "is gone or restarting");
}

/** The error when the worker that took a snapshot cannot restore it, and no other worker can. */
export function onlyItsOwn(reach: Reach, state: "has no room for another sandbox" | "is gone or restarting"): SandgateError {
  const rest = reach === "done" ? "no other worker has room for another sandbox" : onlyThere[reach];
  return new SandgateError("unavailable", `the worker that took this snapshot ${state}, and ${rest}`);
}
