/** The sandboxes of all workers, in memory. */
import type { SandboxEntry } from "../../shared/bus/entries.ts";
import { until } from "../../shared/waiting.ts";
import { Directory, Owned } from "./directory.ts";
import type { EntryMirror } from "./entries.ts";

const pollMs = 50;

const isShown = ({ status }: SandboxEntry): boolean => status === "running" || status === "creating" || status === "moving";

export class SandboxDirectory extends Directory<SandboxEntry> {
  /** What lists show, apart, so that a page of one costs no more for those that it does not show. */
  readonly #shown = new Owned<SandboxEntry>();
  readonly #ofKey = new Map<string, Set<string>>();
  /** By reservation, the id of the sandbox that was made with it. */
  readonly #reservations = new Map<string, string>();

  constructor(mirror: EntryMirror<SandboxEntry>) {
    super("sandbox", mirror);
    const show = (id: string, entry: SandboxEntry | undefined): void => this.#shown.set(id, entry && isShown(entry) ? entry : undefined);
    for (const entry of mirror.values()) {
      this.#index(entry);
      show(entry.id, entry);
    }
    mirror.onChange((id, entry, former) => {
      if (entry) this.#index(entry);
      else if (former) this.#unindex(former);
      show(id, entry);
    });
  }

  /** What lists show to an account, newest first. Another list after every change of it. */
  shownTo(accountId: string): readonly SandboxEntry[] {
    return this.#shown.of(accountId);
  }

  /**
   * Removes the entries of a worker that is gone. Returns the number of sandboxes removed.
   *
   * @param check called before each removal; throws when the worker has come back
   */
  async forgetWorker(workerId: string, check: () => void): Promise<number> {
    const left = await this.ofWorker(workerId);
    for (const entry of left) {
      check();
      await this.mirror.delete(entry);
    }
    return left.length;
  }

  /** All sandboxes of a worker, in every state. */
  async ofWorker(workerId: string): Promise<SandboxEntry[]> {
    await this.caughtUp();
    return [...this.mirror.values()].filter(({ worker_id }) => worker_id === workerId);
  }

  /** The number of sandboxes of each worker that has any, also of those that are away. */
  countsByWorker(): Map<string, number> {
    const counts = new Map<string, number>();
    for (const { worker_id } of this.mirror.values()) counts.set(worker_id, (counts.get(worker_id) ?? 0) + 1);
    return counts;
  }

  /** All sandboxes. */
  all(): IterableIterator<SandboxEntry> {
    return this.mirror.values();
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
    const find = (): SandboxEntry | undefined => this.mirror.get(this.#reservations.get(reservationId) ?? "");
    await until(() => find()?.status !== "creating", { timeoutMs, pollMs });
    return find();
  }

  onChange(listener: (entry: SandboxEntry) => void): void {
    this.mirror.onChange((_id, entry) => entry && listener(entry));
  }

  #index({ id, key_id, reservation_id }: SandboxEntry): void {
    this.#ofKey.set(key_id, (this.#ofKey.get(key_id) ?? new Set()).add(id));
    if (reservation_id) this.#reservations.set(reservation_id, id);
  }

  #unindex({ id, key_id, reservation_id }: SandboxEntry): void {
    const ofKey = this.#ofKey.get(key_id);
    ofKey?.delete(id);
    if (ofKey?.size === 0) this.#ofKey.delete(key_id);
    if (reservation_id) this.#reservations.delete(reservation_id);
  }
}
