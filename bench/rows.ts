/** One line of the report: the result of one contender in one scenario. */
import { type Contender, type Rounds, takeTurns } from "./measure.ts";
import { type Percentiles, percentilesOf } from "./statistics.ts";

export const own = "sandgate";

export interface Row extends Percentiles {
  /** The task, such as `execute true`. */
  readonly task: string;
  readonly contender: string;
  readonly n: number;
  /** Throughput; if present, contenders are compared by it. */
  readonly rate?: { readonly value: number; readonly unit: "calls/s" | "MB/s" };
}

/** A row of timings in milliseconds. */
export function rowOf(task: string, contender: string, latencies: readonly number[], rate?: Row["rate"]): Row {
  return { task, contender, n: latencies.length, ...percentilesOf(latencies), ...(rate ? { rate } : {}) };
}

/** Measures the contenders in turns: a row for each. */
export async function compare(task: string, contenders: readonly Contender<"ms">[], rounds: Rounds): Promise<Row[]> {
  const samples = await takeTurns(contenders, rounds);
  return contenders.map(({ name }) => rowOf(task, name, samples[name]?.ms ?? []));
}

/** How many times as fast as `peer` this row is: by rate if there is one, else by the median time. */
export function speedAgainst(row: Row, peer: Row): number {
  return row.rate && peer.rate ? row.rate.value / peer.rate.value : peer.p50 / row.p50;
}

/** Sandgate's row for the same task. */
export function ownRow(rows: readonly Row[], task: string): Row | undefined {
  return rows.find((row) => row.task === task && row.contender === own);
}
