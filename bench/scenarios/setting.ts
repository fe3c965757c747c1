/** The inputs and results of scenarios. */
import type { Installation } from "../installation.ts";
import type { Rounds } from "../measure.ts";
import type { Row } from "../rows.ts";

export interface Setting {
  readonly installation: Installation;
  /** For everything that the scenario measures, without what it prepares and removes. Milliseconds. */
  readonly budgetMs: number;
  /** Numbers from 0 up to, not including, 1, for what is left to chance. */
  readonly random: () => number;
  /** Aborted on Ctrl-C. */
  readonly signal: AbortSignal;
  /** Shows what is being measured. */
  readonly say: (text: string) => void;
}

interface Part {
  /** Of the scenario's budget. */
  readonly share: number;
  readonly warmUp: number;
  readonly countMin?: number;
  readonly countMax?: number;
  readonly turnMs?: number;
}

/** The rounds of one comparison, which take a share of the scenario's time, or less if that is enough. */
export function roundsOf({ budgetMs, random, signal, say }: Setting, what: string, { share, warmUp, countMin = 3, countMax = 1_000, turnMs }: Part): Rounds {
  let saidMs = 0;
  const onRound = (done: number): void => {
    if (performance.now() - saidMs < 500) return;
    saidMs = performance.now();
    say(`${what}, ${done} times`);
  };
  return { warmUp, countMin, countMax, turnMs, budgetMs: budgetMs * share, random, signal, onRound };
}

export type Scenario = (setting: Setting) => Promise<Row[]>;
