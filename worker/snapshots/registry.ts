/** The snapshots of this worker: records on disk, entries in the directory, and the only way to change their state. */

import type { Layer, Manifest, SnapshotEntry } from "../../shared/bus/entries.ts";
import { SandgateError } from "../../shared/errors.ts";
import { faultPoint } from "../../shared/faults.ts";
import { errors } from "../../shared/known-errors.ts";
import { nextArchiveState, nextSnapshotState, type SnapshotEvent } from "../../shared/state/snapshot.ts";
import type { OwnEntries } from "../store/entries.ts";
import type { Store } from "../store/store.ts";

/** What a snapshot takes on disk, as far as it is known. */
export type Sizes = Pick<SnapshotEntry, "exclusive_bytes" | "shared_bytes">;

export class Snapshots {
  readonly #records = new Map<string, SnapshotEntry>();
  /** Snapshots being taken now, which reconciliation must leave alone. */
  readonly #taking = new Set<string>();
  readonly #store: Store;
  readonly #directory: OwnEntries<SnapshotEntry>;

  constructor(store: Store, directory: OwnEntries<SnapshotEntry>) {
    this.#store = store;
    this.#directory = directory;
    for (const record of store.snapshots()) this.#records.set(record.id, record);
  }

  all(): IterableIterator<SnapshotEntry> {
    return this.#records.values();
  }

  get(id: string): SnapshotEntry | undefined {
    return this.#records.get(id);
  }

  /** @throws {SandgateError} `not_found`, also for a snapshot of another account. */
  owned(id: string, accountId: string): SnapshotEntry {
    const record = this.#records.get(id);
    if (!record || record.account_id !== accountId || record.status === "deleting") throw errors.notFound("snapshot", id);
    return record;
  }

  /** The snapshot that an attempt has created. */
  byAttempt(attemptId: string): SnapshotEntry | undefined {
    return [...this.#records.values()].find((record) => record.attempt_id === attemptId && record.status === "ready");
  }

  /** Records the intent to take a snapshot, or a change of it; nobody else sees it yet. */
  async begin(record: SnapshotEntry): Promise<void> {
    this.#taking.add(record.id);
    await this.#keep(record);
  }

  /** Marks the snapshot as complete, first on disk, then in the directory. @throws {SandgateError} `unavailable`. */
  async complete(id: string, changes: Partial<SnapshotEntry>): Promise<SnapshotEntry> {
    const record = await this.#apply(id, "taken", changes);
    faultPoint("snapshot.recorded");
    await this.publish(record);
    this.#taking.delete(id);
    return record;
  }

  /** Puts a snapshot into the directory, unless it is temporary. @throws {SandgateError} `unavailable`. */
  async publish(record: SnapshotEntry): Promise<void> {
    if (!record.temporary) await this.#directory.put(record.id, record);
  }

  isBeingTaken(id: string): boolean {
    return this.#taking.has(id);
  }

  /** Notes that all layers of the snapshot are in the object store. */
  async noteStored(id: string): Promise<void> {
    const record = this.#records.get(id);
    const archived = record && nextArchiveState(record.archived, "stored");
    if (!archived || record.status !== "ready") return;
    await this.#keep({ ...record, archived });
    await this.#directory.change(id, (entry) => ({ ...entry, archived }));
  }

  /** Tells everybody what the snapshot takes now. Not recorded, since it can be read again. @throws {SandgateError} `unavailable`. */
  async noteSizes(id: string, sizes: Sizes): Promise<void> {
    await this.#directory.change(id, (entry) => ({ ...entry, ...sizes }));
    const record = this.#records.get(id);
    if (record) this.#records.set(id, { ...record, ...sizes });
  }

  /**
   * Notes which layers are to be in the object store for the snapshot, first on disk, then in the directory: from then on they
   * are not removed from there. @throws {SandgateError} `unavailable`.
   */
  async noteLayers(id: string, stored: readonly Layer[] | undefined): Promise<void> {
    const record = this.#records.get(id);
    if (record?.status !== "ready") return;
    const change = ({ stored: _, ...manifest }: Manifest): Manifest => ({ ...manifest, ...(stored ? { stored: [...stored] } : {}) });
    await this.#keep({ ...record, manifest: change(record.manifest) });
    await this.#directory.change(id, (entry) => ({ ...entry, manifest: change(entry.manifest) }));
  }

  /** Removes the record of a snapshot that was never completed. Can be repeated when the disk was full. */
  async discard(id: string): Promise<void> {
    this.#taking.delete(id);
    await this.#store.deleteSnapshot(id);
    this.#records.delete(id);
  }

  /** Finishes what was begun and could not be removed again. @throws {SandgateError} `insufficient_storage`, `unavailable` */
  async finishRemoval(id: string): Promise<void> {
    const status = this.#records.get(id)?.status;
    if (status === "deleting") await this.remove(id);
    else if (status === "creating" && !this.isBeingTaken(id)) await this.discard(id);
  }

  /** Deletes a snapshot. When this resolves, its layers may go. @throws {SandgateError} `unavailable`; the snapshot is then `deleting`. */
  async remove(id: string): Promise<void> {
    const { temporary } = await this.#apply(id, "delete");
    faultPoint("delete.marked");
    if (!temporary) await this.#directory.delete(id);
    faultPoint("delete.withdrawn");
    await this.discard(id);
  }

  /** The directory entry of a snapshot. */
  entry(id: string): Promise<SnapshotEntry | undefined> {
    return this.#directory.read(id);
  }

  /** Removes this worker's entries of snapshots that it does not have. */
  withdrawUnknown(): Promise<void> {
    return this.#directory.withdrawUnknown((id) => this.#records.has(id));
  }

  /** @throws {SandgateError} `conflict` when the state does not allow the event. */
  async #apply(id: string, event: SnapshotEvent, changes: Partial<SnapshotEntry> = {}): Promise<SnapshotEntry> {
    const record = this.#records.get(id);
    const status = record && nextSnapshotState(record.status, event);
    if (!status) throw new SandgateError("conflict", `the snapshot is ${record?.status ?? "gone"}, which does not allow this`);
    return this.#keep({ ...record, ...changes, status });
  }

  async #keep(record: SnapshotEntry): Promise<SnapshotEntry> {
    this.#records.set(record.id, record);
    await this.#store.putSnapshot(record);
    return record;
  }
}
