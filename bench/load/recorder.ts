/** What a load has measured so far: for each row, in intervals. */
import { APIConnectionError, APIConnectionTimeoutError, APIError, RateLimitError } from "../../shared/client/errors.ts";
import { Latencies } from "./latencies.ts";
import type { RowResult } from "./result.ts";

/**
 * Intervals of a load, each with as many arrivals. They are what comparisons draw from, so shared noise should rarely
 * last longer than one of them.
 */
export const intervalCount = 20;

/** A command that did not end with 0, or did not answer as it should. */
export class StepFailure extends Error {
  override name = "StepFailure";
  readonly code: string;

  constructor(code: string, message = code) {
    super(message);
    this.code = code;
  }
}

/** The code under which a failed action is counted: the API's own where there is one. */
export function failureCode(error: unknown): string {
  if (error instanceof StepFailure) return error.code;
  if (error instanceof APIConnectionTimeoutError) return "timeout";
  if (error instanceof APIConnectionError) return "no_answer";
  if (error instanceof APIError) return error.code ?? `status_${error.status}`;
  return error instanceof Error ? `client_${error.name}` : "client_error";
}

class Interval {
  readonly latencies = Latencies.empty();
  count = 0;
  failures = 0;
}

class RowRecord {
  readonly intervals = new Map<number, Interval>();
  readonly errors = new Map<string, number>();
  refused = 0;
  bytes = 0;

  interval(index: number): Interval {
    const interval = this.intervals.get(index) ?? new Interval();
    this.intervals.set(index, interval);
    return interval;
  }

  result(name: string, isMark: boolean): RowResult {
    const all = Latencies.sum([...this.intervals.values()].map(({ latencies }) => latencies));
    const intervals = Array.from({ length: intervalCount }, (_, index) => {
      const { count = 0, failures = 0, latencies = Latencies.empty() } = this.intervals.get(index) ?? {};
      return { count, failures, p50: latencies.percentile(0.5), p99: latencies.percentile(0.99), histogram: latencies.encoded };
    });
    const sum = (pick: (interval: Interval) => number): number => [...this.intervals.values()].reduce((total, one) => total + pick(one), 0);
    const [p50, p90, p95, p99] = [0.5, 0.9, 0.95, 0.99].map((share) => all.percentile(share)) as [number, number, number, number];
    const ms = { mean: all.meanMs, p50, p90, p95, p99, p999: all.percentile(0.999), max: all.maxMs };
    const counts = { count: sum(({ count }) => count), failures: sum(({ failures }) => failures), refused: this.refused, bytes: this.bytes };
    return { name, isMark, ...counts, errors: Object.fromEntries(this.errors), ms, intervals };
  }
}

/** One action that is under way. */
export interface Arrival {
  /** The row of the action. */
  readonly row: string;
  readonly interval: number;
  /** When it was to begin, of `performance.now()`: latency counts from here, so that waiting to be sent is part of it. */
  readonly dueMs: number;
}

export class Recorder {
  readonly #rows = new Map<string, RowRecord>();
  readonly #marks = new Set<string>();
  /** Of all actions since the last `begin`, without times within them. */
  all = Latencies.empty();
  /** Actions that have ended. */
  ended = 0;
  failures = 0;
  refused = 0;
  readonly #messages = new Map<string, string>();

  /** Counts from here for what is shown meanwhile. */
  begin(): void {
    this.all = Latencies.empty();
    [this.ended, this.failures, this.refused] = [0, 0, 0];
  }

  /** Makes the rows appear in this order, also those that nothing arrives for. */
  expect(rows: readonly string[]): void {
    for (const row of rows) this.#row(row);
  }

  done({ row, interval, dueMs }: Arrival, bytes: number): void {
    const ms = performance.now() - dueMs;
    const record = this.#row(row);
    const into = record.interval(interval);
    into.count++;
    into.latencies.record(ms);
    record.bytes += bytes;
    this.all.record(ms);
    this.ended++;
  }

  /** Counts a failure by its code; its latency says nothing and is left out. */
  failed(arrival: Arrival, error: unknown): void {
    this.#fail(arrival, error);
    this.ended++;
  }

  /** Counts the failure of what follows an action that has succeeded, as a row of its own below the action's. */
  failedAfterwards({ row, ...arrival }: Arrival, error: unknown): void {
    const title = `${row}, clean-up`;
    this.#marks.add(title);
    this.#fail({ ...arrival, row: title }, error);
  }

  #fail({ row, interval }: Arrival, error: unknown): void {
    const record = this.#row(row);
    const into = record.interval(interval);
    const code = failureCode(error);
    into.count++;
    into.failures++;
    record.errors.set(code, (record.errors.get(code) ?? 0) + 1);
    if (!this.#messages.has(code)) this.#messages.set(code, error instanceof Error ? error.message : String(error));
    if (error instanceof RateLimitError) {
      record.refused++;
      this.refused++;
    }
    this.failures++;
  }

  /** Records a time within an action, as a row of its own below the action's. */
  mark({ row, interval }: Arrival, name: string, ms: number): void {
    const title = `${row}, ${name}`;
    this.#marks.add(title);
    const into = this.#row(title).interval(interval);
    into.count++;
    into.latencies.record(ms);
  }

  /** The first message of each failure, by code. */
  get messages(): Readonly<Record<string, string>> {
    return Object.fromEntries(this.#messages);
  }

  results(): RowResult[] {
    const names = [...this.#rows.keys()];
    const actions = names.filter((name) => !this.#marks.has(name));
    const ordered = actions.flatMap((name) => [name, ...names.filter((mark) => this.#marks.has(mark) && mark.startsWith(`${name}, `))]);
    return ordered.map((name) => this.#row(name).result(name, this.#marks.has(name)));
  }

  #row(name: string): RowRecord {
    const row = this.#rows.get(name) ?? new RowRecord();
    this.#rows.set(name, row);
    return row;
  }
}
