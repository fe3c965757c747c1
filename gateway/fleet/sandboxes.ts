/** The sandboxes of all workers, from the in-memory directory. */

import type { SandboxEntry } from "../../shared/bus/entries.ts";
import { SandgateError } from "../../shared/errors.ts";
import { isId } from "../../shared/util/ids.ts";
import { until } from "../../shared/waiting.ts";
import type { EntryMirror } from "./entries.ts";
import { Owned } from "./owned.ts";

const pollMs = 50;

const notFound = (id: string): SandgateError => new SandgateError("not_found", `Sandbox not found: ${id.slice(0, 64)}`, { reason: "no_such_sandbox" });

export class SandboxDirectory {
  readonly #mirror: EntryMirror<SandboxEntry>;
  readonly #owned = new Owned<SandboxEntry>();
  readonly #entries = new Map<string, SandboxEntry>();
  readonly #ofKey = new Map<string, Set<string>>();
  /** Sandbox ids by the reservation they were created with. */
  readonly #reservations = new Map<string, string>();

  constructor(mirror: EntryMirror<SandboxEntry>) {
    this.#mirror = mirror;
    for (const entry of mirror.values()) this.#changed(entry.id, entry);
    mirror.onChange((id, entry) => this.#changed(id, entry));
  }

  /** All sandboxes of an account, newest first. */
  ofAccount(accountId: string): readonly SandboxEntry[] {
    return this.#owned.of(accountId);
  }

  /** The number of sandboxes of each account that has any. */
  countsByAccount(): Iterable<readonly [accountId: string, count: number]> {
    return this.#owned.counts();
  }

  /** @throws {SandgateError} `not_found`, also for a sandbox of another account. */
  async find(id: string, accountId: string): Promise<SandboxEntry> {
    const entry = await this.findOfAny(id);
    if (entry.account_id !== accountId) throw notFound(id);
    return entry;
  }

  /** A sandbox of any account. @throws {SandgateError} `not_found`. */
  async findOfAny(id: string): Promise<SandboxEntry> {
    const entry = isId("sandbox", id) ? await this.#mirror.find(id) : undefined;
    if (!entry) throw notFound(id);
    return entry;
  }

  /**
   * Removes the entries of a worker that is gone. Returns the number of sandboxes removed.
   *
   * @param check called before each removal; throws when the worker has come back
   */
  async forgetWorker(workerId: string, check: () => void): Promise<number> {
    await this.caughtUp();
    const left = [...this.#entries.values()].filter(({ worker_id }) => worker_id === workerId);
    for (const entry of left) {
      check();
      await this.#mirror.delete(entry);
    }
    return left.length;
  }

  /** Adds an entry from a worker's reply, unless the directory already has it or a newer version. */
  noteCreated(entry: SandboxEntry): void {
    const known = this.#mirror.get(entry.id);
    if (!known || known.status === "creating") this.#mirror.note(entry);
  }

  /** Removes a sandbox that its worker reports as gone, before the directory does. */
  noteGone(id: string): void {
    this.#mirror.gone(id);
  }

  /** All sandboxes. */
  all(): IterableIterator<SandboxEntry> {
    return this.#entries.values();
  }

  /** The number of existing sandboxes that a key has created. */
  countOfKey(keyId: string): number {
    return this.#ofKey.get(keyId)?.size ?? 0;
  }

  /** Whether a sandbox exists that was created with this reservation. */
  hasReservation(id: string): boolean {
    return this.#reservations.has(id);
  }

  /** The sandbox created with this reservation. Waits until its creation has finished, or until the timeout. */
  async settled(reservationId: string, timeoutMs: number): Promise<SandboxEntry | undefined> {
    await this.caughtUp();
    const find = (): SandboxEntry | undefined => this.#entries.get(this.#reservations.get(reservationId) ?? "");
    await until(() => find()?.status !== "creating", { timeoutMs, pollMs });
    return find();
  }

  /** Resolves when every change stored before this call is known here. */
  caughtUp(): Promise<void> {
    return this.#mirror.caughtUp();
  }

  onChange(listener: (entry: SandboxEntry) => void): void {
    this.#mirror.onChange((_id, entry) => entry && listener(entry));
  }

  #changed(id: string, entry: SandboxEntry | undefined): void {
    const former = this.#entries.get(id);
    const { key_id, reservation_id } = entry ?? former ?? {};
    if (key_id === undefined) return;
    this.#owned.set(id, entry);
    const ofKey = this.#ofKey.get(key_id) ?? new Set();
    this.#ofKey.set(key_id, ofKey);
    if (entry) {
      this.#entries.set(id, entry);
      ofKey.add(id);
      if (reservation_id) this.#reservations.set(reservation_id, id);
    } else {
      this.#entries.delete(id);
      ofKey.delete(id);
      if (reservation_id) this.#reservations.delete(reservation_id);
      if (ofKey.size === 0) this.#ofKey.delete(key_id);
    }
  }
}
