/** The snapshots of all workers, from the in-memory directory. */

import type { SnapshotEntry } from "../../shared/bus/entries.ts";
import { layersOf } from "../../shared/bus/snapshot-layers.ts";
import { SandgateError } from "../../shared/errors.ts";
import { isId } from "../../shared/util/ids.ts";
import type { EntryMirror } from "./entries.ts";
import { type LayerCollector, neededOf } from "./layers.ts";
import { Owned } from "./owned.ts";

const notFound = (id: string): SandgateError => new SandgateError("not_found", `Snapshot not found: ${id.slice(0, 64)}`, { reason: "no_such_snapshot" });

const isDeleted = ({ status }: SnapshotEntry): boolean => status === "deleting";

export class SnapshotDirectory {
  readonly #mirror: EntryMirror<SnapshotEntry>;
  readonly #owned = new Owned<SnapshotEntry>();
  readonly #layers: LayerCollector;

  constructor(mirror: EntryMirror<SnapshotEntry>, layers: LayerCollector) {
    this.#mirror = mirror;
    this.#layers = layers;
    for (const entry of mirror.values()) this.#owned.set(entry.id, entry);
    mirror.onChange((id, entry) => this.#owned.set(id, entry));
  }

  /** All snapshots of an account that are not deleted, newest first. */
  ofAccount(accountId: string): readonly SnapshotEntry[] {
    return this.#owned.of(accountId).filter((entry) => !isDeleted(entry));
  }

  /** @throws {SandgateError} `not_found`, also for a snapshot of another account. */
  async find(id: string, accountId: string): Promise<SnapshotEntry> {
    const entry = isId("snapshot", id) ? await this.#mirror.find(id) : undefined;
    if (entry?.account_id !== accountId || isDeleted(entry)) throw notFound(id);
    return entry;
  }

  /** The snapshot that an attempt has made so far: a ready one before one in creation, before a failed one. */
  byAttempt(attemptId: string): SnapshotEntry | undefined {
    const made = [...this.#mirror.values()].filter((entry) => entry.attempt_id === attemptId && !isDeleted(entry));
    return made.find(({ status }) => status === "ready") ?? made.find(({ status }) => status === "creating") ?? made[0];
  }

  /** Adds an entry from a worker's reply, unless the directory already has it or a newer version. */
  note(entry: SnapshotEntry): void {
    const known = this.#mirror.get(entry.id);
    if (!known || known.status === "creating") this.#mirror.note(entry);
  }

  /** Removes a snapshot that a worker reports as gone, before the directory does. */
  gone(id: string): void {
    this.#mirror.gone(id);
  }

  /** Marks the snapshot of an absent worker as deleted; the worker drops its files when it returns. False if it was already deleted. */
  async markDeleted(entry: SnapshotEntry): Promise<boolean> {
    let isFirst = false;
    await this.#mirror.change(entry, (now) => {
      isFirst = !isDeleted(now);
      return { ...now, status: "deleting" };
    });
    return isFirst;
  }

  /** Removes the layers of a deleted snapshot from the object store, unless another snapshot of its worker needs them. */
  async dropLayers({ worker_id, manifest }: SnapshotEntry): Promise<void> {
    const inUse = async (): Promise<ReadonlySet<string>> => {
      await this.caughtUp();
      return neededOf([...this.#mirror.values()], worker_id);
    };
    const ids = layersOf(manifest).map(({ id }) => id);
    await this.#layers.collect(worker_id, ids, inUse);
  }

  /** Resolves when every change stored before this call is known here. */
  caughtUp(): Promise<void> {
    return this.#mirror.caughtUp();
  }
}
