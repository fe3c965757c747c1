/** Measuring contenders in turns. */

/** One implementation of a task: Sandgate, or a peer it is compared with. */
export interface Contender<Metric extends string = string> {
  readonly name: string;
  /** Does the task once. Returns milliseconds by metric, without the clean-up. */
  measure(): Promise<Readonly<Record<Metric, number>>>;
}

/** A contender that measures one time. */
export const timing = (name: string, measure: () => Promise<number>): Contender<"ms"> => ({ name, measure: async () => ({ ms: await measure() }) });

export interface Rounds {
  readonly count: number;
  /** Rounds before the first one that counts. */
  readonly warmUp: number;
  readonly signal: AbortSignal;
  /** Called before every round that counts. */
  readonly onRound?: (done: number) => void;
}

/** Timings of each contender in milliseconds, by metric. */
export type Samples<Metric extends string> = Readonly<Record<string, Readonly<Record<Metric, number[]>>>>;

/**
 * Measures the contenders in turns, so that noise on the machine affects all of them. Each round starts with a different one,
 * so that none always runs right after the same other.
 *
 * @throws the signal's reason when it is aborted; the running measurement is finished first, so that it leaves nothing behind
 */
export async function takeTurns<Metric extends string>(contenders: readonly Contender<Metric>[], rounds: Rounds): Promise<Samples<Metric>> {
  const samples: Record<string, Record<string, number[]>> = Object.fromEntries(contenders.map(({ name }) => [name, {}]));
  for (let round = -rounds.warmUp; round < rounds.count; round++) {
    if (round >= 0) rounds.onRound?.(round);
    for (let turn = 0; turn < contenders.length; turn++) {
      rounds.signal.throwIfAborted();
      const contender = contenders[(turn + round + rounds.warmUp) % contenders.length] as Contender<Metric>;
      const timings: Readonly<Record<string, number>> = await contender.measure();
      if (round < 0) continue;
      const own = samples[contender.name] as Record<string, number[]>;
      for (const [metric, ms] of Object.entries(timings)) {
        own[metric] ??= [];
        own[metric].push(ms);
      }
    }
  }
  return samples as Samples<Metric>;
}

/** The duration of the work in milliseconds. */
export async function timed(work: () => Promise<unknown>): Promise<number> {
  return (await timedResult(work)).ms;
}

/** The duration of the work in milliseconds, with its result. */
export async function timedResult<T>(work: () => Promise<T>): Promise<{ readonly ms: number; readonly result: T }> {
  const begun = performance.now();
  const result = await work();
  return { ms: performance.now() - begun, result };
}

/**
 * Keeps `clients` operations running until `total` have been started.
 *
 * @returns the milliseconds of each operation, and of the whole
 */
export async function inParallel(clients: number, total: number, operation: () => Promise<number>): Promise<{ latencies: number[]; wallMs: number }> {
  const latencies: number[] = [];
  let started = 0;
  const client = async (): Promise<void> => {
    while (started++ < total) latencies.push(await operation());
  };
  const wallMs = await timed(() => Promise.all(Array.from({ length: clients }, client)));
  return { latencies, wallMs };
}
