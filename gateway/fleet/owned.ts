/** What accounts own, by account, so that whatever is asked of one costs what that one has. */
import { newestFirst } from "../../shared/util/newest-first.ts";

interface Ownable {
  readonly id: string;
  readonly account_id: string;
  readonly created_at_ms: number;
}

export class Owned<T extends Ownable> {
  readonly #byAccount = new Map<string, Map<string, T>>();
  /** Made when first asked for, and dropped when something of the account changes. */
  readonly #sorted = new Map<string, readonly T[]>();
  /** Whose it is, which a deletion does not say. */
  readonly #accountOf = new Map<string, string>();

  /** Takes over a change; `undefined` means gone. */
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
    // An account that has nothing could be asked about under any name.
    if (entries.length > 0) this.#sorted.set(accountId, entries);
    return entries;
  }

  /** How many each account has that has any. */
  *counts(): Generator<readonly [accountId: string, count: number]> {
    for (const [accountId, own] of this.#byAccount) yield [accountId, own.size];
  }
}
