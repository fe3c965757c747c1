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
  /** Rounds before the first one that counts. */
  readonly warmUp: number;
  readonly countMin: number;
  readonly countMax: number;
  /** When this time has passed since the first round that counts, no other one begins. Milliseconds. */
  readonly budgetMs: number;
  readonly signal: AbortSignal;
  /** Called before every round that counts. */
  readonly onRound?: (done: number) => void;
}

/** Timings of each contender in milliseconds, by metric. */
export type Samples<Metric extends string> = Readonly<Record<string, Readonly<Record<Metric, number[]>>>>;

/** After which share of more rounds the question whether they are enough is asked again. */
const askAgain = 1.25;

/**
 * Measures the contenders in turns, so that noise on the machine affects all of them. Each round starts with a different one,
 * so that none always runs right after the same other.
 *
 * @param areEnough whether the samples so far say what is to be known
 * @throws the signal's reason when it is aborted; the running measurement is finished first, so that it leaves nothing behind
 */
export async function takeTurns<Metric extends string>(
  contenders: readonly Contender<Metric>[],
  rounds: Rounds,
  areEnough: (samples: Samples<Metric>) => boolean,
): Promise<Samples<Metric>> {
  const samples: Record<string, Record<string, number[]>> = Object.fromEntries(contenders.map(({ name }) => [name, {}]));
  for (let round = -rounds.warmUp; round < 0; round++) await takeTurn(contenders, round + rounds.warmUp, rounds.signal, () => undefined);
  const endMs = performance.now() + rounds.budgetMs;
  for (let [round, asked] = [0, rounds.countMin]; round < rounds.countMax; round++) {
    if (round >= rounds.countMin && performance.now() >= endMs) break;
    if (round >= asked && areEnough(samples as Samples<Metric>)) break;
    if (round >= asked) asked = Math.ceil(round * askAgain);
    rounds.onRound?.(round);
    await takeTurn(contenders, round, rounds.signal, (name, timings) => {
      const own = samples[name] as Record<string, number[]>;
      for (const [metric, ms] of Object.entries(timings)) own[metric] = [...(own[metric] ?? []), ms];
    });
  }
  return samples as Samples<Metric>;
}

type Note = (name: string, timings: Readonly<Record<string, number>>) => void;

async function takeTurn(contenders: readonly Contender[], first: number, signal: AbortSignal, note: Note): Promise<void> {
  for (let turn = 0; turn < contenders.length; turn++) {
    signal.throwIfAborted();
    const contender = contenders[(turn + first) % contenders.length] as Contender;
    note(contender.name, await contender.measure());
  }
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
