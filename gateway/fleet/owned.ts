/** An index of resources by account, so that a query costs only as much as its account owns. */
import { newestFirst } from "../../shared/util/newest-first.ts";

interface Ownable {
  readonly id: string;
  readonly account_id: string;
  readonly created_at_ms: number;
}

export class Owned<T extends Ownable> {
  readonly #byAccount = new Map<string, Map<string, T>>();
  /** Sorted on first use, and dropped when the account's entries change. */
  readonly #sorted = new Map<string, readonly T[]>();
  /** The account of each id, which a deletion does not carry. */
  readonly #accountOf = new Map<string, string>();

  /** Applies a change; `undefined` means removed. */
  set(id: string, entry: T | undefined): void {
    const accountId = entry?.account_id ?? this.#accountOf.get(id);
    if (accountId === undefined) return;
    const own = this.#byAccount.get(accountId) ?? new Map<string, T>();
    this.#sorted.delete(accountId);
    if (entry) {
      this.#accountOf.set(id, accountId);
      this.#byAccount.set(accountId, own.set(id, entry));
    } else {
      this.#accountOf.delete(id);
      own.delete(id);
      if (own.size === 0) this.#byAccount.delete(accountId);
    }
  }

  /** All of an account, newest first. */
  of(accountId: string): readonly T[] {
    const known = this.#sorted.get(accountId);
    if (known) return known;
    const entries = newestFirst([...(this.#byAccount.get(accountId)?.values() ?? [])]);
    // Empty results are not cached: any account id could be asked for.
    if (entries.length > 0) this.#sorted.set(accountId, entries);
    return entries;
  }

  /** The number of entries of each account that has any. */
  *counts(): Generator<readonly [accountId: string, count: number]> {
    for (const [accountId, own] of this.#byAccount) yield [accountId, own.size];
  }
}
