/**
 * The directory entries of all workers, by entry id. A worker can write any content under keys that begin with its own id.
 * So an entry is accepted only if its content matches its key, and an id owned by one worker is never taken over by another, unless
 * a gateway has written into the owner's entry that the other one has it.
 */

import { BucketWriter, type Versioned } from "../../shared/bus/kv.ts";
import { BucketMirror } from "../../shared/bus/mirror.ts";
import type { Bus } from "../../shared/bus/nats.ts";
import { type Bucket, entryKey } from "../../shared/bus/subjects.ts";
import type { Check } from "../../shared/schemas/validate.ts";
import type { Logger } from "../../shared/util/log.ts";

interface Entry {
  readonly id: string;
  readonly worker_id: string;
  /** See `SandboxEntry`. */
  readonly moved_to?: string;
  readonly handed_over?: true;
}

/** Without an entry, the former one is gone. */
type Listener<T> = (id: string, entry: T | undefined, former: T | undefined) => void;

/** Makes what is shown in place of an entry. */
type View<T> = (entry: T) => T;

export class EntryMirror<T extends Entry> {
  readonly #mirror: BucketMirror<T>;
  readonly #log: Logger;
  /** As the workers have written them. */
  readonly #entries = new Map<string, T>();
  /** How the entries of some workers are shown, and what is therefore shown in place of them. */
  readonly #views = new Map<string, View<T>>();
  readonly #shown = new Map<string, T>();
  /** Ids that several workers claimed when this process started, so that their owner is unknown. */
  readonly #contested = new Set<string>();
  /** Those of workers that do not have it any more, by key. */
  readonly #given = new Map<string, T>();
  readonly #changed = new Set<Listener<T>>();

  private constructor(mirror: BucketMirror<T>, log: Logger) {
    this.#mirror = mirror;
    this.#log = log;
    for (const [key, entry] of mirror.entries()) {
      if (!this.#isOwn(key, entry)) continue;
      this.#noteGiven(key, entry);
      const known = this.#entries.get(entry.id);
      if (entry.handed_over || (known && entry.moved_to === known.worker_id)) continue;
      if (known && known.moved_to !== entry.worker_id) this.#contested.add(entry.id);
      this.#entries.set(entry.id, entry);
    }
    for (const id of this.#contested) {
      this.#entries.delete(id);
      log.error({ event: "entry_contested", id }, "several workers claim this id; it cannot be used until only one does and the gateway is restarted");
    }
    for (const entry of this.#entries.values()) if (entry.moved_to !== undefined) this.#show(entry.id, entry, undefined);
    mirror.onChange((key, entry) => this.#take(key, entry));
  }

  /** Opens the bucket. Resolves once its current content is in memory. */
  static async watch<T extends Entry>(bus: Bus, name: Bucket, check: Check<T>, log: Logger): Promise<EntryMirror<T>> {
    await renameFormer(await BucketWriter.open(bus, name, check));
    return new EntryMirror(await BucketMirror.watch(bus, name, check, log), log);
  }

  get(id: string): T | undefined {
    return this.#shown.get(id) ?? this.#entries.get(id);
  }

  *values(): IterableIterator<T> {
    for (const [id, entry] of this.#entries) yield this.#shown.get(id) ?? entry;
  }

  /** Shows the entries of a worker in another way, or, without a view, as it has written them. */
  showAs(workerId: string, view: View<T> | undefined): void {
    if (view) this.#views.set(workerId, view);
    else this.#views.delete(workerId);
    for (const entry of this.#entries.values()) if (entry.worker_id === workerId) this.#show(entry.id, entry, this.get(entry.id));
  }

  /** Finds an entry in memory; that it is missing is certain. */
  async find(id: string): Promise<T | undefined> {
    const known = this.get(id);
    if (known) return known;
    await this.#mirror.certain();
    return this.get(id);
  }

  /** Calls back on every change; `undefined` means removed. */
  onChange(listener: Listener<T>): void {
    this.#changed.add(listener);
  }

  /** Adds an entry that its worker has just reported, before the watch delivers it. */
  note(entry: T): void {
    this.#mirror.note(entryKey(entry.worker_id, entry.id), entry);
  }

  /** Removes an entry that its worker reports as gone, before the watch does. */
  gone(id: string): void {
    const entry = this.#entries.get(id);
    if (entry) this.#mirror.note(entryKey(entry.worker_id, id), undefined);
  }

  /** @throws {SandgateError} `unavailable`. */
  async delete({ worker_id, id }: Entry): Promise<void> {
    await this.#mirror.delete(entryKey(worker_id, id));
  }

  async change({ worker_id, id }: Entry, change: (entry: T) => T): Promise<T | undefined> {
    return this.#mirror.change(entryKey(worker_id, id), change);
  }

  /** The entry as it is stored now, with the revision that a change of it must name. */
  version({ worker_id, id }: Entry): Promise<Versioned<T> | undefined> {
    return this.#mirror.readVersion(entryKey(worker_id, id));
  }

  /** Whether there is no such entry of that worker. Beyond doubt, as nobody makes it again. @throws {SandgateError} `unavailable` */
  async isMissing({ worker_id, id }: Entry): Promise<boolean> {
    await this.#mirror.certain();
    return this.#mirror.get(entryKey(worker_id, id)) === undefined;
  }

  /** @returns whether it was replaced; else somebody has changed it since */
  async replace({ worker_id, id }: Entry, entry: T, revision: number): Promise<boolean> {
    return (await this.#mirror.replace(entryKey(worker_id, id), entry, revision)) !== undefined;
  }

  /** The entries of workers that do not have it any more, and have not removed their copies yet. */
  given(): T[] {
    return [...this.#given.values()];
  }

  caughtUp(): Promise<void> {
    return this.#mirror.caughtUp();
  }

  forgetDeleted(ageMs: number): Promise<void> {
    return this.#mirror.forgetDeleted(ageMs);
  }

  stop(): void {
    this.#mirror.stop();
  }

  #take(key: string, entry: T | undefined): void {
    const id = entry?.id ?? key.slice(key.indexOf(".") + 1);
    if (entry && !this.#isOwn(key, entry)) return;
    this.#noteGiven(key, entry);
    const known = this.#entries.get(id);
    const isAnothers = known !== undefined && entryKey(known.worker_id, id) !== key && !(entry && known.moved_to === entry.worker_id);
    if (this.#contested.has(id) || isAnothers) {
      if (entry && entry.moved_to === undefined) this.#log.error({ event: "entry_refused", id, key }, "a worker claims an id that belongs to another worker");
      return;
    }
    this.#set(id, entry && this.#heirOf(entry));
  }

  /** The entry of the worker that has it now; undefined where nobody has. */
  #heirOf(entry: T): T | undefined {
    const { id, moved_to } = entry;
    if (moved_to === undefined) return entry;
    const heir = this.#mirror.get(entryKey(moved_to, id));
    if (heir && heir.id === id && heir.worker_id === moved_to && heir.moved_to === undefined) return heir;
    return entry.handed_over ? undefined : entry;
  }

  #set(id: string, entry: T | undefined): void {
    const former = this.get(id);
    if (entry) this.#entries.set(id, entry);
    else if (!this.#entries.delete(id)) return;
    this.#show(id, entry, former);
  }

  /** What was given to another worker is shown as that one's, also before it says so itself. */
  #show(id: string, entry: T | undefined, former: T | undefined): void {
    const present = entry?.moved_to === undefined ? entry : { ...entry, worker_id: entry.moved_to };
    const view = present && this.#views.get(present.worker_id);
    if (present && view) this.#shown.set(id, view(present));
    else if (present && present !== entry) this.#shown.set(id, present);
    else this.#shown.delete(id);
    for (const listener of this.#changed) listener(id, this.get(id), former);
  }

  #noteGiven(key: string, entry: T | undefined): void {
    if (entry?.moved_to === undefined) this.#given.delete(key);
    else this.#given.set(key, entry);
  }

  #isOwn(key: string, { worker_id, id }: T): boolean {
    const isOwn = key === entryKey(worker_id, id);
    if (!isOwn) this.#log.error({ event: "entry_refused", id, key }, "a directory entry does not match its key and is ignored");
    return isOwn;
  }
}

/** Renames entries from versions before 0.2, whose keys were the id alone. Safe when several gateways do it at once. */
async function renameFormer<T extends Entry>(bucket: BucketWriter<T>): Promise<void> {
  for (const key of await bucket.keys()) {
    if (key.includes(".")) continue;
    const entry = await bucket.read(key);
    if (entry) await bucket.create(entryKey(entry.worker_id, entry.id), entry);
    await bucket.delete(key);
  }
}
