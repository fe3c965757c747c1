/**
 * The log of what ran: read in pages, bounded in bytes for each sandbox and each account. The oldest rows give way. Whatever
 * is done to many rows is done in steps, between which others have their turn.
 */
import type { Database, RootDatabase } from "lmdb";
import type { LogEntry } from "../../shared/bus/contract/commands.ts";
import { Semaphore } from "../../shared/util/mutex.ts";
import { yielding } from "../../shared/util/yielding.ts";
import { boundedEntry, messageBytesOf, withoutOutput } from "./entry.ts";
import { LogRows, type Period, type Position, type Scope, type Total } from "./rows.ts";

/** How many bytes of the log are kept. */
export interface LogLimits {
  readonly sandboxBytes: number;
  readonly accountBytes: number;
  /** Whether the disk has room. Without it no new entries are written; those that are there still get their end. */
  readonly hasRoom: () => boolean;
}

export interface LogFilter extends Scope, Period {
  /** Only rows that come after this one. */
  readonly after?: Position | undefined;
  readonly limit: number;
  /** Bytes of the page; one row comes in any case. */
  readonly bytesMax: number;
}

export interface LogPage {
  /** Newest first. */
  readonly logs: LogEntry[];
  /** All rows of that time, whatever the page. */
  readonly total: number;
  /** Whether there are rows after those of the page. */
  readonly more: boolean;
}

/** Pages that are in the making at the same time; more wait for their turn. */
const pagesAtOnce = 4;
/** Rows that are removed or moved in one transaction. */
const stepRows = 100;

export class ExecutionLog {
  readonly #root: RootDatabase;
  readonly #limits: LogLimits;
  readonly #rows: LogRows;
  /** Rows as former versions kept them, until they are moved. */
  readonly #former: Database<LogEntry, [accountId: string, startedAtMs: number, executionId: string]>;
  readonly #pages = new Semaphore(pagesAtOnce);
  #closing = false;
  #tidying: Promise<void> | undefined;

  constructor(root: RootDatabase, limits: LogLimits) {
    this.#root = root;
    this.#limits = limits;
    this.#rows = new LogRows(root);
    this.#former = root.openDB({ name: "executions" });
  }

  /** Resolves when the entry is committed; one with the same execution id and start replaces the former. */
  async put(entry: LogEntry): Promise<void> {
    const bounded = boundedEntry(entry);
    const hasRoom = this.#limits.hasRoom();
    await this.#root.transaction(() => {
      if (hasRoom) this.#add(bounded);
      else if (this.#rows.has(bounded)) this.#rows.put(withoutOutput(bounded));
    });
  }

  page(filter: LogFilter): Promise<LogPage> {
    return this.#pages.run(() => this.#page(filter));
  }

  async #page(filter: LogFilter): Promise<LogPage> {
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

  /** What is kept of an account, or of one of its sandboxes. */
  total(scope: Scope): Total {
    return this.#rows.total(scope);
  }

  /** Entries of executions that were running when the worker last stopped. */
  unfinished(): LogEntry[] {
    return this.#rows.running();
  }

  /** Removes what began before this time or is too much, and moves what a former version left. A call while one runs shares it. */
  tidy(beforeMs: number): Promise<void> {
    this.#tidying ??= this.#tidy(beforeMs).finally(() => {
      this.#tidying = undefined;
    });
    return this.#tidying;
  }

  /** Resolves when nothing is being tidied any more. */
  async close(): Promise<void> {
    this.#closing = true;
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

  /** Each step in a transaction of its own, until one finds nothing to do. */
  async #inSteps(step: () => number): Promise<void> {
    while (!this.#closing && (await this.#root.transaction(step)) > 0);
  }

  #moveFormer(beforeMs: number): number {
    const rows = [...this.#former.getRange({ limit: stepRows })];
    for (const { key, value } of rows) {
      this.#former.remove(key);
      if (value.started_at_ms < beforeMs) continue;
      // What ran then has lost its client; nobody else will say so.
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

  /** Removes the oldest rows of what has too many, as far as one step goes. Returns how many it removed. */
  #trim(scope: Scope): number {
    const bytes = this.#excess(scope);
    return bytes > 0 ? this.#rows.removeOldest(scope, { bytes, most: stepRows }) : 0;
  }
}

/** The end of an execution that ran when its worker stopped. */
export function endedByRestart(entry: LogEntry): LogEntry {
  const error = "the worker restarted while the command ran";
  return { ...entry, status: "error", exit_code: -1, execution_time_ms: Date.now() - entry.started_at_ms, error };
}
