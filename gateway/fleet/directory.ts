/** What all workers have of one kind, in memory, by id and by account. */
import { errors } from "../../shared/known-errors.ts";
import { isId } from "../../shared/util/ids.ts";
import type { EntryMirror } from "./entries.ts";
import { Owned } from "./owned.ts";

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

  /** Takes over an entry from a worker's reply, unless the directory already has it or a newer version. */
  note(entry: T): void {
    const known = this.mirror.get(entry.id);
    if (!known || known.status === "creating") this.mirror.note(entry);
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
