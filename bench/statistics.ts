/** Percentiles, and how sure one may be that two sets of measurements differ. */
import { seededRandom } from "../test/helpers/random.ts";

export interface Percentiles {
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
}

/** The value that the given share of the values does not exceed (nearest rank). @param share above 0, at most 1 */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
}

export function percentilesOf(values: readonly number[]): Percentiles {
  return { p50: percentile(values, 0.5), p95: percentile(values, 0.95), p99: percentile(values, 0.99) };
}

/** A value, and how often it was measured. */
export type Counted = readonly [value: number, count: number];

/** What was measured together, such as in the same seconds: shared noise moves all of it at once, so it is drawn as a whole. */
export type Block = readonly Counted[];

/** A value with the range in which it lies with the confidence that was asked for. */
export interface Estimate {
  readonly value: number;
  readonly low: number;
  readonly high: number;
}

interface Resampling {
  readonly share: number;
  /** How sure the range is to contain the true value, between 0 and 1. */
  readonly confidence: number;
  /** Whether blocks of the same position were measured side by side, so that they are drawn together. */
  readonly isPaired: boolean;
}

/** Fewer blocks say nothing of how much they differ by chance. */
export const blocksMin = 5;
const resamples = 1_000;
/** Fixed, so that a comparison says the same each time. */
const seed = 1;

/**
 * How many times as large a percentile is in `other` as in `base`, by a bootstrap: runs are drawn with replacement, and of each
 * drawn one its blocks; the range is what the drawn ratios cover.
 *
 * @param base runs, each with its blocks
 * @returns undefined if either has fewer than `blocksMin` blocks with values, or is 0
 */
export function ratioOf(
  base: readonly (readonly Block[])[],
  other: readonly (readonly Block[])[],
  { share, confidence, isPaired }: Resampling,
): Estimate | undefined {
  if ([base, other].some((runs) => runs.flat().filter((block) => block.length > 0).length < blocksMin)) return undefined;
  const [denominator, numerator] = [new Pool(base.flat()), new Pool(other.flat())];
  const [below, above] = [positionsOf(base), positionsOf(other)];
  const ratio = (first: readonly number[], second: readonly number[]): number => numerator.percentile(second, share) / denominator.percentile(first, share);
  const random = seededRandom(seed);
  const drawn = Array.from({ length: resamples }, () => {
    const first = draw(below, random);
    return ratio(first, isPaired ? first : draw(above, random));
  });
  return rangeOf(ratio(below.flat(), above.flat()), drawn, confidence);
}

/** Narrow enough: a range at most this wide, as a share of the value. */
const tightWidth = 0.1;

export const isTight = ({ value, low, high }: Estimate): boolean => high - low <= tightWidth * value;

/** The times of each round. */
export type RoundTimes = readonly (readonly number[])[];

/** How many times as fast `ours` is as `theirs`, by the median of times that were measured in turns, 95 % sure; undefined for too few. */
export const timesAsFast = (ours: RoundTimes, theirs: RoundTimes): Estimate | undefined => timesAsLong(theirs, ours, 0.5);

/** How many times as long `ours` takes as `theirs`, by a percentile of times that were measured in turns, 95 % sure; undefined for too few. */
export function timesAsLong(ours: RoundTimes, theirs: RoundTimes, share: number): Estimate | undefined {
  const blocks = (rounds: RoundTimes): Block[] => rounds.map((times) => times.map((time) => [time, 1]));
  return ratioOf([blocks(theirs)], [blocks(ours)], { share, confidence: 0.95, isPaired: true });
}

/** Successes and failures of a block. */
export interface Outcomes {
  readonly count: number;
  readonly failures: number;
}

/** How much larger the share of failures is in `other` than in `base`, as `ratioOf` finds it. */
export function failuresMore(base: readonly (readonly Outcomes[])[], other: readonly (readonly Outcomes[])[], confidence: number): Estimate | undefined {
  const [first, second] = [base, other].map((runs) => runs.map((run) => run.filter(({ count }) => count > 0)).filter((run) => run.length > 0)) as [
    Outcomes[][],
    Outcomes[][],
  ];
  if ([first, second].some((runs) => runs.flat().length < blocksMin)) return undefined;
  const [below, above] = [positionsOf(first), positionsOf(second)];
  const [before, after] = [first.flat(), second.flat()];
  const difference = (one: readonly number[], two: readonly number[]): number => failureShare(after, two) - failureShare(before, one);
  const random = seededRandom(seed);
  const drawn = Array.from({ length: resamples }, () => difference(draw(below, random), draw(above, random)));
  return rangeOf(difference(below.flat(), above.flat()), drawn, confidence);
}

function failureShare(blocks: readonly Outcomes[], chosen: readonly number[]): number {
  let [count, failures] = [0, 0];
  for (const index of chosen) {
    count += blocks[index]?.count ?? 0;
    failures += blocks[index]?.failures ?? 0;
  }
  return failures / count;
}

/** For each run, the positions of its blocks among those of all. */
function positionsOf(runs: readonly (readonly unknown[])[]): number[][] {
  let position = 0;
  return runs.map((run) => run.map(() => position++));
}

const drawOne = <T>(items: readonly T[], random: () => number): T => items[Math.floor(random() * items.length)] as T;

/** As many runs as there are, and of each as many blocks as it has, with replacement. */
function draw(runs: readonly (readonly number[])[], random: () => number): number[] {
  return runs.flatMap(() => {
    const run = drawOne(runs, random);
    return run.map(() => drawOne(run, random));
  });
}

function rangeOf(value: number, drawn: readonly number[], confidence: number): Estimate | undefined {
  const real = drawn.filter(Number.isFinite);
  if (!Number.isFinite(value) || real.length === 0) return undefined;
  return { value, low: percentile(real, (1 - confidence) / 2), high: percentile(real, (1 + confidence) / 2) };
}

/** Blocks whose values are numbered, so that drawing many of them is adding up counts. */
class Pool {
  readonly #values: readonly number[];
  /** How often each value occurs in what is drawn at the moment. */
  readonly #counts: Uint32Array;
  readonly #blocks: readonly (readonly Counted[])[];

  constructor(blocks: readonly Block[]) {
    this.#values = [...new Set(blocks.flatMap((block) => block.map(([value]) => value)))].sort((a, b) => a - b);
    this.#counts = new Uint32Array(this.#values.length);
    const positions = new Map(this.#values.map((value, position) => [value, position]));
    this.#blocks = blocks.map((block) => block.map(([value, count]) => [positions.get(value) ?? 0, count] as const));
  }

  /** A percentile (nearest rank) of what the chosen blocks have together; NaN if that is nothing. */
  percentile(chosen: readonly number[], share: number): number {
    const counts = this.#counts.fill(0);
    let total = 0;
    for (const index of chosen) {
      for (const [position, count] of this.#blocks[index] ?? []) {
        counts[position] = (counts[position] ?? 0) + count;
        total += count;
      }
    }
    let left = Math.max(1, Math.ceil(share * total));
    for (let position = 0; position < counts.length; position++) {
      left -= counts[position] ?? 0;
      if (left <= 0) return this.#values[position] ?? Number.NaN;
    }
    return Number.NaN;
  }
}
