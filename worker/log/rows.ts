/**
 * The rows of the execution log in LMDB, ordered by time for each account and each sandbox. Counts are updated as rows come
 * and go, so that no query has to count them.
 */
import type { Database, RootDatabase } from "lmdb";
import type { LogEntry } from "../../shared/bus/contract/commands.ts";
import { yielding } from "../../shared/util/yielding.ts";
import { storedBytesOf } from "./entry.ts";

/** An account, or one of its sandboxes. */
export interface Scope {
  readonly accountId: string;
  readonly sandboxId?: string | undefined;
}

/** A period of time, both ends included. */
export interface Period {
  readonly fromMs: number;
  readonly toMs: number;
}

/** The position of a row among those of its account: newest first; at the same time, the highest id first. */
export interface Position {
  readonly started_at_ms: number;
  readonly execution_id: string;
}

export interface Total {
  readonly rows: number;
  readonly bytes: number;
}

type RowKey = [accountId: string, startedAtMs: number, executionId: string];
type SandboxRowKey = [accountId: string, sandboxId: string, startedAtMs: number, executionId: string];
type TotalKey = [accountId: string, sandboxId: string];
type MinuteKey = [...TotalKey, minute: number];

const minuteMs = 60_000;
/** Stands for the sandbox in the keys of counts for the whole account. */
const whole = "";
const highest = "\uffff";
const nothing: Total = { rows: 0, bytes: 0 };

const rowKeyOf = ({ account_id, started_at_ms, execution_id }: LogEntry): RowKey => [account_id, started_at_ms, execution_id];
const sandboxRowKeyOf = (entry: LogEntry): SandboxRowKey => [entry.account_id, entry.sandbox_id, entry.started_at_ms, entry.execution_id];
const scopesOf = ({ account_id, sandbox_id }: LogEntry): TotalKey[] => [
  [account_id, whole],
  [account_id, sandbox_id],
];

/** Methods that change rows must be called in a transaction. */
export class LogRows {
  readonly #rows: Database<LogEntry, RowKey>;
  /** The rows of each sandbox, with the bytes they were counted as. */
  readonly #ofSandbox: Database<number, SandboxRowKey>;
  readonly #totals: Database<Total, TotalKey>;
  /** How many rows began in each minute. */
  readonly #minutes: Database<number, MinuteKey>;
  readonly #running: Database<true, RowKey>;

  constructor(root: RootDatabase) {
    this.#rows = root.openDB({ name: "log" });
    this.#ofSandbox = root.openDB({ name: "log_of_sandbox" });
    this.#totals = root.openDB({ name: "log_totals" });
    this.#minutes = root.openDB({ name: "log_minutes" });
    this.#running = root.openDB({ name: "log_running" });
  }

  has(entry: LogEntry): boolean {
    return this.#rows.doesExist(rowKeyOf(entry));
  }

  total({ accountId, sandboxId = whole }: Scope): Total {
    return this.#totals.get([accountId, sandboxId]) ?? nothing;
  }

  /** All accounts and sandboxes that have rows, found without reading the rows. Each is looked up only when it is reached. */
  *scopes(): Generator<Scope> {
    for (let last: TotalKey = ["", whole]; ; ) {
      const [next] = this.#totals.getKeys({ start: last, exclusiveStart: true, limit: 1 });
      if (!next) return;
      last = next;
      yield next[1] === whole ? { accountId: next[0] } : { accountId: next[0], sandboxId: next[1] };
    }
  }

  /** The entries of commands that have not ended. */
  running(): LogEntry[] {
    return [...this.#running.getKeys()].flatMap((key) => this.#rows.get(key) ?? []);
  }

  /** @param after only rows that come after this position */
  *newestFirst({ accountId, sandboxId }: Scope, { fromMs, toMs }: Period, after?: Position): Generator<LogEntry> {
    const first = after && after.started_at_ms <= toMs ? after : { started_at_ms: toMs, execution_id: highest };
    const order = { reverse: true, exclusiveStart: true };
    const start = [first.started_at_ms, first.execution_id] as const;
    if (sandboxId === undefined) {
      for (const { value } of this.#rows.getRange({ ...order, start: [accountId, ...start], end: [accountId, fromMs, ""] })) yield value;
      return;
    }
    const keys = this.#ofSandbox.getKeys({ ...order, start: [accountId, sandboxId, ...start], end: [accountId, sandboxId, fromMs, ""] });
    for (const [, , atMs, id] of keys) {
      // The row may have been removed since.
      const entry = this.#rows.get([accountId, atMs, id]);
      if (entry) yield entry;
    }
  }

  /** How many rows began in the period. Whole minutes have been counted; rows are counted only in the partial ones at the ends. */
  async count({ accountId, sandboxId = whole }: Scope, { fromMs, toMs }: Period): Promise<number> {
    const count = (startMs: number, endMs: number): number =>
      sandboxId === whole
        ? this.#rows.getKeysCount({ start: [accountId, startMs, ""], end: [accountId, endMs, ""] })
        : this.#ofSandbox.getKeysCount({ start: [accountId, sandboxId, startMs, ""], end: [accountId, sandboxId, endMs, ""] });
    const endMs = toMs + 1;
    const [firstMinute, endMinute] = [Math.ceil(fromMs / minuteMs), Math.floor(endMs / minuteMs)];
    if (firstMinute >= endMinute) return count(fromMs, endMs);
    let sum = count(fromMs, firstMinute * minuteMs) + count(endMinute * minuteMs, endMs);
    const minutes = this.#minutes.getRange({ start: [accountId, sandboxId, firstMinute], end: [accountId, sandboxId, endMinute] });
    for await (const { value } of yielding(minutes)) sum += value;
    return sum;
  }

  /** Writes a row, or replaces the row of the same execution. */
  put(entry: LogEntry): void {
    const former = this.#ofSandbox.get(sandboxRowKeyOf(entry));
    const bytes = storedBytesOf(entry);
    this.#rows.put(rowKeyOf(entry), entry);
    this.#ofSandbox.put(sandboxRowKeyOf(entry), bytes);
    if (entry.status === "running") this.#running.put(rowKeyOf(entry), true);
    else this.#running.remove(rowKeyOf(entry));
    this.#count(entry, former === undefined ? 1 : 0, bytes - (former ?? 0));
  }

  /**
   * Removes the oldest rows until the next one began at `beforeMs` or later, `bytes` are freed, or `most` rows are removed.
   *
   * @returns how many were removed
   */
  removeOldest(
    scope: Scope,
    { bytes = Number.POSITIVE_INFINITY, beforeMs = Number.POSITIVE_INFINITY, most }: { bytes?: number; beforeMs?: number; most: number },
  ): number {
    const found: { entry: LogEntry; bytes: number }[] = [];
    let freed = 0;
    for (const entry of this.#oldestFirst(scope)) {
      if (freed >= bytes || found.length >= most || entry.started_at_ms >= beforeMs) break;
      found.push({ entry, bytes: this.#ofSandbox.get(sandboxRowKeyOf(entry)) ?? 0 });
      freed += found.at(-1)?.bytes ?? 0;
    }
    for (const row of found) this.#remove(row.entry, row.bytes);
    return found.length;
  }

  *#oldestFirst({ accountId, sandboxId }: Scope): Generator<LogEntry> {
    if (sandboxId === undefined) {
      for (const { value } of this.#rows.getRange({ start: [accountId, 0, ""], end: [accountId, Number.MAX_SAFE_INTEGER, ""] })) yield value;
      return;
    }
    const range = this.#ofSandbox.getKeys({ start: [accountId, sandboxId, 0, ""], end: [accountId, sandboxId, Number.MAX_SAFE_INTEGER, ""] });
    for (const [, , atMs, id] of range) {
      const entry = this.#rows.get([accountId, atMs, id]);
      if (entry) yield entry;
    }
  }

  #remove(entry: LogEntry, bytes: number): void {
    this.#rows.remove(rowKeyOf(entry));
    this.#ofSandbox.remove(sandboxRowKeyOf(entry));
    this.#running.remove(rowKeyOf(entry));
    this.#count(entry, -1, -bytes);
  }

  #count(entry: LogEntry, rows: number, bytes: number): void {
    for (const key of scopesOf(entry)) {
      const before = this.#totals.get(key) ?? nothing;
      const after = { rows: before.rows + rows, bytes: before.bytes + bytes };
      if (after.rows > 0) this.#totals.put(key, after);
      else this.#totals.remove(key);
      if (rows === 0) continue;
      const minute: MinuteKey = [...key, Math.floor(entry.started_at_ms / minuteMs)];
      const inMinute = (this.#minutes.get(minute) ?? 0) + rows;
      if (inMinute > 0) this.#minutes.put(minute, inMinute);
      else this.#minutes.remove(minute);
    }
  }
}
