/** One line of the report: the result of one contender in one scenario. */
import { type Contender, type Rounds, type Samples, takeTurns } from "./measure.ts";
import { type Estimate, isTight, type Percentiles, percentilesOf, type RoundTimes, timesAsFast } from "./statistics.ts";

export const own = "sandgate";

export interface Row extends Percentiles {
  /** The task, such as `execute true`. */
  readonly task: string;
  readonly contender: string;
  readonly n: number;
  /** Throughput; if present, contenders are compared by it. */
  readonly rate?: { readonly value: number; readonly unit: "calls/s" | "MB/s" };
  /** What it takes. */
  readonly use?: { readonly value: number; readonly unit: "MB" | "ms/s" };
  /** Of a peer that took turns with Sandgate: how many times as fast Sandgate is. */
  readonly speed?: Estimate | "too few rounds";
  /** Of a peer that took turns with Sandgate: how many times as long Sandgate's slowest hundredth takes. */
  readonly slowest?: Estimate | "too few rounds";
}

/** A row of timings in milliseconds. */
export function rowOf(task: string, contender: string, latencies: readonly number[], more: Pick<Row, "rate" | "use" | "speed"> = {}): Row {
  return { task, contender, n: latencies.length, ...percentilesOf(latencies), ...more };
}

/** The timings of one contender, taken in turns with those of the others. */
export interface Timings {
  readonly contender: string;
  /** Of each round. */
  readonly rounds: RoundTimes;
}

/** A row for each contender. Those after the first, which is Sandgate, are compared with it. @param rate made of the timings */
export function rowsOf(task: string, [ours, ...peers]: readonly [Timings, ...Timings[]], rate?: (ms: readonly number[]) => Row["rate"]): Row[] {
  const more = (ms: readonly number[]): Pick<Row, "rate"> => {
    const made = rate?.(ms);
    return made ? { rate: made } : {};
  };
  const compared = peers.map(({ contender, rounds }) => {
    return rowOf(task, contender, rounds.flat(), { ...more(rounds.flat()), speed: timesAsFast(ours.rounds, rounds) ?? "too few rounds" });
  });
  return [rowOf(task, ours.contender, ours.rounds.flat(), more(ours.rounds.flat())), ...compared];
}

/** Whether the speed against every peer is known well enough, in all of these metrics. Never for a contender without a peer. */
export function areTight<Metric extends string>(samples: Samples<Metric>, metrics: readonly Metric[]): boolean {
  const [ours, ...peers] = Object.values<Samples<Metric>[string]>(samples);
  if (!ours || peers.length === 0) return false;
  return metrics.every((metric) =>
    peers.every((peer) => {
      const speed = timesAsFast(ours[metric] ?? [], peer[metric] ?? []);
      return speed !== undefined && isTight(speed);
    }),
  );
}

/** The task's name where only the first call after another contender's turn counts. */
export const afterAnother = (task: string): string => `${task}, after somebody else`;

/** Measures the contenders in turns, the first of which is Sandgate: a row for each, and one more for its first calls where turns have several. */
export async function compare(
  task: string,
  contenders: readonly [Contender<"ms">, ...Contender<"ms">[]],
  rounds: Rounds,
  rate?: (ms: readonly number[]) => Row["rate"],
): Promise<Row[]> {
  const taken = await takeTurns(contenders, rounds, (samples) => areTight(samples, ["ms"]));
  const timings = (samples: Samples<"ms">) => contenders.map(({ name }): Timings => ({ contender: name, rounds: samples[name]?.ms ?? [] }));
  const inARow = rowsOf(task, timings(taken.inARow) as [Timings, ...Timings[]], rate);
  if (rounds.turnMs === undefined || contenders.length === 1) return inARow;
  return [...inARow, ...rowsOf(afterAnother(task), timings(taken.afterAnother) as [Timings, ...Timings[]])];
}

/** How many times as fast as `peer` this row is: by rate if there is one, else by the median time. */
export function speedAgainst(row: Row, peer: Row): number {
  return row.rate && peer.rate ? row.rate.value / peer.rate.value : peer.p50 / row.p50;
}

/** The row of a contender for a task. */
export function rowBy(rows: readonly Row[], task: string, contender: string): Row | undefined {
  return rows.find((row) => row.task === task && row.contender === contender);
}
