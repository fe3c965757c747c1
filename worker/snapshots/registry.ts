/** The snapshots of this worker: records on disk, entries in the directory, and which layers they need. */

import type { SnapshotEntry } from "../../shared/bus/messages.ts";
import { SandgateError } from "../../shared/errors.ts";
import { faultPoint } from "../faults.ts";
import type { OwnEntries } from "../store/entries.ts";
import type { SnapshotRecord, Store } from "../store/store.ts";

export class Snapshots {
  readonly #records = new Map<string, SnapshotRecord>();
  /** Those that are being taken now, which a look at what is left of the last process must not touch. */
  readonly #taking = new Set<string>();
  readonly #store: Store;
  readonly #directory: OwnEntries<SnapshotEntry>;

  constructor(store: Store, directory: OwnEntries<SnapshotEntry>) {
    this.#store = store;
    this.#directory = directory;
    for (const record of store.snapshots()) this.#records.set(record.id, record);
  }

  all(): IterableIterator<SnapshotRecord> {
    return this.#records.values();
  }

  get(id: string): SnapshotRecord | undefined {
    return this.#records.get(id);
  }

  /** @throws {SandgateError} `not_found`, also for a snapshot of another account. */
  owned(id: string, accountId: string): SnapshotRecord {
    const record = this.#records.get(id);
    if (!record || record.account_id !== accountId || record.deleting)
      throw new SandgateError("not_found", `Snapshot not found: ${id}`, { reason: "no_such_snapshot" });
    return record;
  }

  /** What an attempt has made. */
  byAttempt(attemptId: string): SnapshotRecord | undefined {
    return [...this.#records.values()].find((record) => record.attempt_id === attemptId && record.status === "ready" && !record.deleting);
  }

  /** Writes the intent to take a snapshot, which nobody else sees. */
  async begin(record: SnapshotRecord): Promise<void> {
    this.#taking.add(record.id);
    this.#records.set(record.id, record);
    await this.#store.putSnapshot(record);
  }

  /** The snapshot is whole: on disk first, then for everybody. */
  async publish(record: SnapshotRecord): Promise<void> {
    this.#records.set(record.id, record);
    await this.#store.putSnapshot(record);
    faultPoint("snapshot.recorded");
    await this.#directory.put(record.id, entryOf(record));
    this.#taking.delete(record.id);
  }

  isBeingTaken(id: string): boolean {
    return this.#taking.has(id);
  }

  /** All layers of the snapshot are in the object store, or could not be put there. */
  async noteArchived(id: string, archived: SnapshotEntry["archived"]): Promise<void> {
    const record = this.#records.get(id);
    if (!record || record.deleting) return;
    const changed = { ...record, archived };
    this.#records.set(id, changed);
    await this.#store.putSnapshot(changed);
    await this.#directory.change(id, (entry) => ({ ...entry, archived }));
  }

  /** Forgets a snapshot that never became whole. */
  async discard(id: string): Promise<void> {
    this.#records.delete(id);
    this.#taking.delete(id);
    await this.#store.deleteSnapshot(id);
  }

  /** Removes a snapshot for everybody. Its layers may go when this resolves. */
  async remove(record: SnapshotRecord): Promise<void> {
    const deleting: SnapshotRecord = { ...record, deleting: true };
    this.#records.set(record.id, deleting);
    await this.#store.putSnapshot(deleting);
    faultPoint("delete.marked");
    await this.#directory.delete(record.id);
    faultPoint("delete.withdrawn");
    await this.discard(record.id);
  }

  /** What the directory has under an id. */
  entry(id: string): Promise<SnapshotEntry | undefined> {
    return this.#directory.read(id);
  }

  /** Removes this worker's entries of snapshots that it does not have. */
  async withdrawUnknown(): Promise<void> {
    for (const id of await this.#directory.ids()) {
      if (!this.#records.has(id) && (await this.#directory.read(id)) && !this.#records.has(id)) await this.#directory.delete(id);
    }
  }
}

function entryOf({ deleting: _deleting, ...entry }: SnapshotRecord): SnapshotEntry {
  return entry;
}
