/**
 * The execution log: read in pages, and limited in bytes per sandbox and per account by removing the oldest rows. Operations
 * on many rows run in steps, so that other work is not held up.
 */
import type { Database, RootDatabase } from "lmdb";
import type { LogEntry } from "../../shared/bus/contract/commands.ts";
import { Semaphore } from "../../shared/util/mutex.ts";
import { yielding } from "../../shared/util/yielding.ts";
import { Batches } from "./batches.ts";
import { boundedEntry, messageBytesOf, withoutOutput } from "./entry.ts";
import type { LogJournal } from "./journal.ts";
import { LogRows, type Period, type Position, type Scope, type Total } from "./rows.ts";

/** The size limits of the log. */
export interface LogLimits {
  readonly sandboxBytes: number;
  readonly accountBytes: number;
  /** Whether the disk has room. If not, no new entries are written, but existing ones still get their end. */
  readonly hasRoom: () => boolean;
}

export interface LogOptions extends LogLimits {
  readonly journal?: LogJournal | undefined;
  /** Is told of entries in the journal that could not be committed. */
  readonly onFailure?: (error: unknown) => void;
}

export interface LogFilter extends Scope, Period {
  /** Only rows that come after this position. */
  readonly after?: Position | undefined;
  readonly limit: number;
  /** The most bytes of a page; it always holds at least one row if there is any. */
  readonly bytesMax: number;
}

export interface LogPage {
  /** Newest first. */
  readonly logs: LogEntry[];
  /** All rows of the period, not just those of the page. */
  readonly total: number;
  /** Whether more rows follow those of the page. */
  readonly more: boolean;
}

/** Pages that are read at the same time; further ones wait. */
const pagesAtOnce = 4;
/** Rows removed or moved in one transaction. */
const stepRows = 100;

export class ExecutionLog {
  readonly #root: RootDatabase;
  readonly #limits: LogLimits;
  readonly #rows: LogRows;
  /** Rows in the format of earlier versions, until they are moved. */
  readonly #former: Database<LogEntry, [accountId: string, startedAtMs: number, executionId: string]>;
  readonly #pages = new Semaphore(pagesAtOnce);
  readonly #journal: LogJournal | undefined;
  readonly #onFailure: (error: unknown) => void;
  readonly #batches = new Batches((entries) => this.#commit(entries));
  #closing = false;
  #tidying: Promise<void> | undefined;

  constructor(root: RootDatabase, { journal, onFailure = () => {}, ...limits }: LogOptions) {
    this.#root = root;
    this.#limits = limits;
    this.#journal = journal;
    this.#onFailure = onFailure;
    this.#rows = new LogRows(root);
    this.#former = root.openDB({ name: "executions" });
  }

  /**
   * Resolves when the entry cannot be lost with this process any more; with a journal, that takes no disk. An entry with the same
   * execution id and start is replaced.
   */
  async put(entry: LogEntry): Promise<void> {
    const bounded = boundedEntry(entry);
    const committed = this.#batches.add(bounded);
    if (this.#journal?.hold(bounded, committed)) return void committed.catch(this.#onFailure);
    await Promise.all([committed, this.#batches.flush()]);
  }

  /** Takes up what an earlier process left in the journal. */
  async recover(): Promise<void> {
    for (const entry of this.#journal?.left() ?? []) await this.#commit([entry]).catch(this.#onFailure);
    this.#journal?.clear();
  }

  async #commit(entries: readonly LogEntry[]): Promise<void> {
    const hasRoom = this.#limits.hasRoom();
    await this.#root.transaction(() => {
      for (const entry of entries) {
        if (hasRoom) this.#add(entry);
        else if (this.#rows.has(entry)) this.#rows.put(withoutOutput(entry));
      }
    });
  }

  page(filter: LogFilter): Promise<LogPage> {
    return this.#pages.run(() => this.#page(filter));
  }

  async #page(filter: LogFilter): Promise<LogPage> {
    // Whoever has seen the end of a command finds it here.
    await this.#batches.flush();
    const total = await this.#rows.count(filter, filter);
    const logs: LogEntry[] = [];
    let bytes = 0;
    for await (const entry of yielding(this.#rows.newestFirst(filter, filter, filter.after))) {
      bytes += messageBytesOf(entry);
      if (logs.length >= filter.limit || (logs.length > 0 && bytes > filter.bytesMax)) return { logs, total, more: true };
      logs.push(entry);
    }
    return { logs, total, more: false };
  }

  /** The rows and bytes kept for an account, or for one of its sandboxes. */
  total(scope: Scope): Total {
    return this.#rows.total(scope);
  }

  /** Removes all rows of an account, which runs nothing any more. */
  async forget(accountId: string): Promise<void> {
    await this.#batches.flush();
    await this.#inSteps(() => this.#rows.removeOldest({ accountId }, { most: stepRows }));
  }

  /** Entries of executions that were running when the worker last stopped. */
  unfinished(): LogEntry[] {
    return this.#rows.running();
  }

  /** Removes rows that began before `beforeMs` or exceed a limit, and moves rows of earlier versions. Concurrent calls share one run. */
  tidy(beforeMs: number): Promise<void> {
    this.#tidying ??= this.#tidy(beforeMs).finally(() => {
      this.#tidying = undefined;
    });
    return this.#tidying;
  }

  /** Resolves when everything is committed and no tidying runs any more. */
  async close(): Promise<void> {
    this.#closing = true;
    await this.#batches.flush();
    await this.#tidying?.catch(() => {});
  }

  async #tidy(beforeMs: number): Promise<void> {
    await this.#inSteps(() => (this.#limits.hasRoom() ? this.#moveFormer(beforeMs) : 0));
    for await (const scope of yielding(this.#rows.scopes())) {
      if (this.#closing) return;
      if (scope.sandboxId === undefined) await this.#inSteps(() => this.#rows.removeOldest(scope, { beforeMs, most: stepRows }));
      if (this.#excess(scope) > 0) await this.#inSteps(() => this.#trim(scope));
    }
  }

  /** Runs each step in its own transaction, until one finds nothing to do. */
  async #inSteps(step: () => number): Promise<void> {
    while (!this.#closing && (await this.#root.transaction(step)) > 0);
  }

  #moveFormer(beforeMs: number): number {
    const rows = [...this.#former.getRange({ limit: stepRows })];
    for (const { key, value } of rows) {
      this.#former.remove(key);
      if (value.started_at_ms < beforeMs) continue;
      // A command that ran back then has lost its client, and nothing else will record its end.
      const ended = value.status === "running" ? endedByRestart(value) : value;
      this.#add(boundedEntry(ended));
    }
    return rows.length;
  }

  #add(entry: LogEntry): void {
    this.#rows.put(entry);
    const { account_id: accountId, sandbox_id: sandboxId } = entry;
    this.#trim({ accountId, sandboxId });
    this.#trim({ accountId });
  }

  #excess(scope: Scope): number {
    const { sandboxBytes, accountBytes } = this.#limits;
    return this.#rows.total(scope).bytes - (scope.sandboxId === undefined ? accountBytes : sandboxBytes);
  }

  /** Removes the oldest rows of a scope that is over its limit, at most `stepRows`. Returns how many it removed. */
  #trim(scope: Scope): number {
    const bytes = this.#excess(scope);
    return bytes > 0 ? this.#rows.removeOldest(scope, { bytes, most: stepRows }) : 0;
  }
}

/** The entry of an execution that was running when its worker stopped, marked as ended. */
export function endedByRestart(entry: LogEntry): LogEntry {
  const error = "the worker restarted while the command ran";
  return { ...entry, status: "error", exit_code: -1, execution_time_ms: Date.now() - entry.started_at_ms, error };
}
