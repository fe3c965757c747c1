/** Copies the layers of new snapshots to the archive in the background, one at a time. */

import type { Layer, SnapshotEntry } from "../../shared/bus/entries.ts";
import type { Bus } from "../../shared/bus/nats.ts";
import { memoryOfLayer } from "../../shared/bus/snapshot-layers.ts";
import { SandgateError } from "../../shared/errors.ts";
import type { Logger } from "../../shared/util/log.ts";
import { backoffMs, Condition } from "../../shared/waiting.ts";
import type { LayerArchive, LayerSource } from "./archive.ts";

const retries = { firstMs: 1_000, maxMs: 60_000 };

interface ReplicatorParts {
  readonly archive: LayerArchive;
  readonly bus: Bus;
  readonly log: Logger;
  readonly bytesPerS: number;
  /** Resolves when no more urgent work is left; called before a snapshot, a layer and each piece. */
  readonly giveWay: (signal: AbortSignal) => Promise<void>;
  /** Whether a snapshot is there. One whose deletion was finished only later is still queued. */
  readonly isThere: (snapshotId: string) => boolean;
  /** What a layer is on this worker: usually a folder. */
  readonly sourceOf: (layerId: string) => Promise<LayerSource> | LayerSource;
  /** All layers needed to restore a snapshot, topmost first. */
  readonly layersOf: (snapshot: SnapshotEntry) => readonly Layer[];
  /** Stores a snapshot in a shorter way, if there is one, and says whether it did. */
  readonly storeDifference: (snapshotId: string, store: (layerId: string, source: LayerSource) => Promise<void>) => Promise<boolean>;
  /** Called when every layer of a snapshot is in the archive; if it fails, it is called again later. */
  readonly onDone: (snapshotId: string) => Promise<void>;
}

interface Job {
  readonly snapshotId: string;
  readonly layers: readonly Layer[];
  failures: number;
  /** The earliest time of the next attempt (`performance.now`). */
  dueMs: number;
}

export class Replicator {
  readonly #parts: ReplicatorParts;
  readonly #jobs = new Map<string, Job>();
  /** Layers of queued snapshots that are known to be in the archive. */
  readonly #archived = new Set<string>();
  readonly #stopping = new AbortController();
  readonly #unsubscribe: () => void;
  #current: { readonly snapshotId: string; readonly abort: AbortController; readonly ended: Promise<void> } | undefined;
  #loop: Promise<void> | undefined;
  readonly #news = new Condition();

  constructor(parts: ReplicatorParts) {
    this.#parts = parts;
    this.#unsubscribe = parts.bus.onRestored(() => this.#news.notify());
  }

  /** Bytes on disk of the layers that are still to be stored. */
  get pendingBytes(): number {
    const sizes = new Map<string, number>();
    for (const { layers } of this.#jobs.values()) for (const { id, size_bytes } of layers) if (!this.#archived.has(id)) sizes.set(id, size_bytes);
    return [...sizes.values()].reduce((sum, size) => sum + size, 0);
  }

  /** All layers that the archive needs of a snapshot. */
  layersOf(snapshot: SnapshotEntry): readonly Layer[] {
    return this.#parts.layersOf(snapshot);
  }

  /** Queues the layers of a snapshot, unless it is already queued. @param isUrgent before all others */
  add(snapshot: SnapshotEntry, isUrgent = false): void {
    const { id } = snapshot;
    if (this.#stopping.signal.aborted || this.#jobs.has(id)) return;
    this.#jobs.set(id, { snapshotId: id, layers: this.#parts.layersOf(snapshot), failures: 0, dueMs: isUrgent ? -1 : 0 });
    this.#loop ??= this.#work();
    this.#news.notify();
  }

  /** Takes a snapshot out of the queue. Resolves when none of its layers is being stored on its behalf any more. */
  async forget(snapshotId: string): Promise<void> {
    this.#jobs.delete(snapshotId);
    if (this.#current?.snapshotId !== snapshotId) return;
    this.#current.abort.abort();
    await this.#current.ended;
  }

  /** Aborts the current transfer. Resolves when it has ended. */
  async stop(): Promise<void> {
    this.#unsubscribe();
    this.#stopping.abort();
    this.#news.notify();
    await this.#loop;
  }

  async #work(): Promise<void> {
    for (let job = this.#next(); job && !this.#stopping.signal.aborted; job = this.#next()) {
      const waitMs = this.#parts.bus.connected ? job.dueMs - performance.now() : retries.maxMs;
      if (waitMs > 0) await this.#news.wait(waitMs);
      else await this.#attempt(job);
    }
    this.#archived.clear();
    this.#loop = undefined;
  }

  /** The job that is due first; among equals, the oldest. */
  #next(): Job | undefined {
    let next: Job | undefined;
    for (const job of this.#jobs.values()) if (!next || job.dueMs < next.dueMs) next = job;
    return next;
  }

  async #attempt(job: Job): Promise<void> {
    if (!this.#parts.isThere(job.snapshotId)) return void this.#jobs.delete(job.snapshotId);
    const abort = new AbortController();
    const ended = Promise.withResolvers<void>();
    this.#current = { snapshotId: job.snapshotId, abort, ended: ended.promise };
    try {
      await this.#replicate(job, AbortSignal.any([abort.signal, this.#stopping.signal]));
      this.#jobs.delete(job.snapshotId);
    } catch (error) {
      if (abort.signal.aborted || this.#stopping.signal.aborted) return;
      const delayMs = backoffMs(job.failures++, retries);
      job.dueMs = performance.now() + delayMs;
      this.#parts.log.warn({ err: error, snapshot: job.snapshotId, retry_ms: delayMs }, "a snapshot could not be copied to the archive; trying again");
    } finally {
      this.#current = undefined;
      ended.resolve();
    }
  }

  async #replicate({ snapshotId, layers }: Job, signal: AbortSignal): Promise<void> {
    const { archive, bytesPerS, giveWay, sourceOf, storeDifference, onDone } = this.#parts;
    const store = async (id: string, source: LayerSource): Promise<void> => {
      await giveWay(signal);
      await archive.store(id, source, { bytesPerS, giveWay, signal });
    };
    await giveWay(signal);
    for (const { id } of layers.filter(isMemory)) {
      if (!(await archive.has(id))) await store(id, await sourceOf(id)).catch((err: unknown) => this.#passOver(err, snapshotId));
      this.#archived.add(id);
    }
    if (await storeDifference(snapshotId, store)) return onDone(snapshotId);
    // Bottom first, because other snapshots share the lower layers. Each is checked, since it may have been removed again.
    for (const { id } of layers.filter((layer) => !isMemory(layer)).toReversed()) {
      if (!(await archive.has(id))) await store(id, await sourceOf(id));
      this.#archived.add(id);
      signal.throwIfAborted();
    }
    await onDone(snapshotId);
  }

  /** The files are stored all the same: whoever restores them elsewhere is told that the memory is not there. */
  #passOver(err: unknown, snapshot: string): void {
    if (!(err instanceof SandgateError && err.code === "unprocessable")) throw err;
    this.#parts.log.warn({ err, event: "memory_not_archived", snapshot }, "the memory of a snapshot stays on this worker");
  }
}

const isMemory = ({ id }: Layer): boolean => memoryOfLayer(id) !== undefined;
