/** The sandboxes of all workers, from the directory in memory. */
import { SandgateError } from "../shared/errors.ts";
import { isId } from "../shared/ids.ts";
import type { BucketMirror } from "../shared/kv.ts";
import type { SandboxEntry } from "../shared/schemas/messages.ts";

export class SandboxDirectory {
  readonly #mirror: BucketMirror<SandboxEntry>;
  /** Sorted lists, made when first asked for and dropped when an entry of the account changes. */
  readonly #sorted = new Map<string, readonly SandboxEntry[]>();
  readonly #accountOf = new Map<string, string>();

  constructor(mirror: BucketMirror<SandboxEntry>) {
    this.#mirror = mirror;
    for (const entry of mirror.values()) this.#accountOf.set(entry.id, entry.account_id);
    mirror.onChange((id, entry) => this.#changed(id, entry));
  }

  /** All sandboxes of an account, newest first. */
  ofAccount(accountId: string): readonly SandboxEntry[] {
    const known = this.#sorted.get(accountId);
    if (known) return known;
    const entries = [...this.#mirror.values()].filter((entry) => entry.account_id === accountId);
    // Ids are sortable by time, so equal timestamps keep one order.
    entries.sort((a, b) => b.created_at_ms - a.created_at_ms || (a.id < b.id ? 1 : -1));
    this.#sorted.set(accountId, entries);
    return entries;
  }

  /** @throws {SandgateError} `not_found`, also for a sandbox of another account. */
  async find(id: string, accountId: string): Promise<SandboxEntry> {
    const entry = isId("sandbox", id) ? await this.#mirror.find(id) : undefined;
    if (!entry || entry.account_id !== accountId) throw new SandgateError("not_found", `Sandbox not found: ${id.slice(0, 64)}`);
    return entry;
  }

  /** Takes over what a worker has just replied, unless the directory has brought it, or newer, already. */
  noteCreated(entry: SandboxEntry): void {
    if (!this.#mirror.get(entry.id)) this.#mirror.note(entry.id, entry);
  }

  /** Forgets a sandbox that its worker says is gone, before the directory does. */
  noteGone(id: string): void {
    this.#mirror.note(id, undefined);
  }

  #changed(id: string, entry: SandboxEntry | undefined): void {
    const accountId = entry?.account_id ?? this.#accountOf.get(id);
    if (entry) this.#accountOf.set(id, entry.account_id);
    else this.#accountOf.delete(id);
    if (accountId) this.#sorted.delete(accountId);
  }
}
