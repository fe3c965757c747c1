/** Measuring contenders in turns. */
import { pause } from "../shared/waiting.ts";
import { Sequence } from "./sequence.ts";

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
  /** A turn goes on until it has lasted so long, with two calls at least; of one call when absent. Milliseconds. */
  readonly turnMs?: number | undefined;
  /** Numbers from 0 up to, not including, 1, by which the order of a round is chosen. */
  readonly random: () => number;
  readonly signal: AbortSignal;
  /** Called before every round that counts. */
  readonly onRound?: (done: number) => void;
}

/** Timings of each contender in milliseconds, by metric: one list for each round. */
export type Samples<Metric extends string> = Readonly<Record<string, Readonly<Record<Metric, readonly (readonly number[])[]>>>>;

export interface Taken<Metric extends string> {
  /** Where turns have one call, all of them. */
  readonly inARow: Samples<Metric>;
  /** The first calls of turns that have several. */
  readonly afterAnother: Samples<Metric>;
}

/** A fast contender need not call more often in one turn. */
const callsMax = 50;
/** After which share of more rounds the question whether they are enough is asked again. */
const askAgain = 1.25;

/**
 * Measures the contenders in turns, so that noise on the machine affects all of them.
 *
 * @param areEnough whether the samples so far say what is to be known
 * @throws the signal's reason when it is aborted; the running measurement is finished first, so that it leaves nothing behind
 */
export async function takeTurns<Metric extends string>(
  contenders: readonly Contender<Metric>[],
  rounds: Rounds,
  areEnough: (samples: Samples<Metric>) => boolean,
): Promise<Taken<Metric>> {
  const [inARow, afterAnother] = [new Notes<Metric>(contenders), new Notes<Metric>(contenders)];
  const sequence = new Sequence(contenders, rounds.random);
  for (let round = 0; round < rounds.warmUp; round++) await takeRound(sequence, rounds, () => undefined);
  const endMs = performance.now() + rounds.budgetMs;
  for (let [round, asked] = [0, rounds.countMin]; round < rounds.countMax; round++) {
    if (round >= rounds.countMin && performance.now() >= endMs) break;
    if (round >= asked && areEnough(inARow.samples)) break;
    if (round >= asked) asked = Math.ceil(round * askAgain);
    rounds.onRound?.(round);
    for (const notes of [inARow, afterAnother]) notes.beginRound();
    await takeRound(sequence, rounds, (name, timings, isFirst) => (isFirst ? afterAnother : inARow).add(name, timings));
  }
  return { inARow: inARow.samples, afterAnother: afterAnother.samples };
}

type Note<Metric extends string> = (name: string, timings: Readonly<Record<Metric, number>>, isFirst: boolean) => void;

async function takeRound<Metric extends string>(sequence: Sequence<Contender<Metric>>, { turnMs, signal }: Rounds, note: Note<Metric>): Promise<void> {
  for (const { contender, isAfterAnother } of sequence.round()) {
    const endMs = performance.now() + (turnMs ?? 0);
    const callsMin = turnMs === undefined ? 1 : 2;
    for (let call = 0; call < callsMin || (call < callsMax && performance.now() < endMs); call++) {
      signal.throwIfAborted();
      note(contender.name, await contender.measure(), turnMs !== undefined && isAfterAnother && call === 0);
    }
  }
}

/** What the contenders have measured, round by round. */
class Notes<Metric extends string> {
  readonly #lists: Record<string, Record<string, number[][]>>;
  #rounds = 0;

  constructor(contenders: readonly Contender<Metric>[]) {
    this.#lists = Object.fromEntries(contenders.map(({ name }) => [name, {}]));
  }

  beginRound(): void {
    this.#rounds++;
    for (const lists of Object.values(this.#lists).flatMap((own) => Object.values(own))) lists.push([]);
  }

  add(name: string, timings: Readonly<Record<string, number>>): void {
    const own = this.#lists[name] ?? {};
    for (const [metric, ms] of Object.entries(timings)) {
      own[metric] ??= Array.from({ length: this.#rounds }, () => []);
      own[metric].at(-1)?.push(ms);
    }
  }

  get samples(): Samples<Metric> {
    return this.#lists as Record<string, Record<Metric, number[][]>>;
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

/**
 * Starts operations at a fixed rate, whatever has become of those before them.
 *
 * @returns the milliseconds of each, from when it was due
 */
export async function atRate(perSecond: number, durationMs: number, signal: AbortSignal, operation: () => Promise<unknown>): Promise<number[]> {
  const begunMs = performance.now();
  const running: Promise<number>[] = [];
  for (let number = 0; ; number++) {
    const dueMs = begunMs + (number * 1_000) / perSecond;
    // At a rate of 0 the first one would never be due.
    if (!(dueMs - begunMs < durationMs)) return Promise.all(running);
    const waitMs = dueMs - performance.now();
    if (waitMs > 0) await pause(waitMs, signal);
    const one = operation().then(() => performance.now() - dueMs);
    // The end of all reports a failure.
    one.catch(() => {});
    running.push(one);
  }
}
