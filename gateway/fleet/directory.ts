/** What all workers have of one kind, in memory, by id and by account. */
import { errors } from "../../shared/known-errors.ts";
import { isId } from "../../shared/util/ids.ts";
import { newestFirst, placeOf } from "../../shared/util/newest-first.ts";
import type { EntryMirror } from "./entries.ts";

type Kind = "sandbox" | "snapshot";

interface Listed {
  readonly id: string;
  readonly worker_id: string;
  readonly account_id: string;
  readonly created_at_ms: number;
  readonly status: string;
}

export class Directory<T extends Listed> {
  protected readonly mirror: EntryMirror<T>;
  readonly #kind: Kind;
  readonly #owned = new Owned<T>();

  constructor(kind: Kind, mirror: EntryMirror<T>) {
    this.mirror = mirror;
    this.#kind = kind;
    const take = (id: string, entry: T | undefined): void => this.#owned.set(id, entry && this.isListed(entry) ? entry : undefined);
    for (const entry of mirror.values()) take(entry.id, entry);
    mirror.onChange(take);
  }

  /** Whether clients can see an entry. */
  protected isListed(_entry: T): boolean {
    return true;
  }

  /** The listed entries of an account, newest first. */
  ofAccount(accountId: string): readonly T[] {
    return this.#owned.of(accountId);
  }

  /** The number of listed entries of each account that has any. */
  countsByAccount(): Iterable<readonly [accountId: string, count: number]> {
    return this.#owned.counts();
  }

  /** @throws {SandgateError} `not_found`, also for an entry of another account. */
  async find(id: string, accountId: string): Promise<T> {
    const entry = await this.findOfAny(id);
    if (entry.account_id !== accountId) throw errors.notFound(this.#kind, id);
    return entry;
  }

  /** Finds an entry of any account. @throws {SandgateError} `not_found`. */
  async findOfAny(id: string): Promise<T> {
    const entry = isId(this.#kind, id) ? await this.mirror.find(id) : undefined;
    if (!entry || !this.isListed(entry)) throw errors.notFound(this.#kind, id);
    return entry;
  }

  /** Takes over an entry from a worker's reply, unless the directory already has it or a newer version. Returns the entry. */
  note(entry: T): T {
    const known = this.mirror.get(entry.id);
    if (!known || known.status === "creating") this.mirror.note(entry);
    return entry;
  }

  /** Forgets an entry that its worker reports as gone, before the directory does. */
  noteGone(id: string): void {
    this.mirror.gone(id);
  }

  /** Resolves when every change that was stored before this call is known here. */
  caughtUp(): Promise<void> {
    return this.mirror.caughtUp();
  }
}

interface Ownable {
  readonly id: string;
  readonly account_id: string;
  readonly created_at_ms: number;
}

/** Always the same, so that what is made of it can be cached like that of other lists. */
const none: readonly never[] = [];

/** An index of resources by account, so that a query costs only as much as its account owns. */
export class Owned<T extends Ownable> {
  readonly #byAccount = new Map<string, Belongings<T>>();
  /** The account of each id, which a deletion does not carry. */
  readonly #accountOf = new Map<string, string>();

  /** Applies a change; `undefined` means removed. */
  set(id: string, entry: T | undefined): void {
    const accountId = entry?.account_id ?? this.#accountOf.get(id);
    if (accountId === undefined) return;
    const own = this.#byAccount.get(accountId) ?? new Belongings<T>();
    own.set(id, entry);
    if (entry) {
      this.#accountOf.set(id, accountId);
      this.#byAccount.set(accountId, own);
    } else {
      this.#accountOf.delete(id);
      if (own.size === 0) this.#byAccount.delete(accountId);
    }
  }

  /** All of an account, newest first. Another list after every change. */
  of(accountId: string): readonly T[] {
    return this.#byAccount.get(accountId)?.sorted() ?? none;
  }

  /** The number of entries of each account that has any. */
  *counts(): Generator<readonly [accountId: string, count: number]> {
    for (const [accountId, own] of this.#byAccount) yield [accountId, own.size];
  }
}

/** What one account owns. Changes keep the order, because to sort thousands of entries anew takes milliseconds. */
class Belongings<T extends Ownable> {
  readonly #byId = new Map<string, T>();
  /** Made on first use. */
  #sorted: T[] | undefined;
  /** Whether somebody has the list, so that a change must be one of a copy. */
  #isShared = false;

  get size(): number {
    return this.#byId.size;
  }

  set(id: string, entry: T | undefined): void {
    const former = this.#byId.get(id);
    if (entry) this.#byId.set(id, entry);
    else this.#byId.delete(id);
    if (!this.#sorted) return;
    if (this.#isShared) this.#sorted = this.#sorted.slice();
    this.#isShared = false;
    if (former) this.#sorted.splice(placeOf(former, this.#sorted), 1);
    if (entry) this.#sorted.splice(placeOf(entry, this.#sorted), 0, entry);
  }

  sorted(): readonly T[] {
    this.#sorted ??= newestFirst([...this.#byId.values()]);
    this.#isShared = true;
    return this.#sorted;
  }
}
