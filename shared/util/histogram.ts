/** Durations counted in buckets, as in a Prometheus histogram. */
import { currentTrace, type TraceContext } from "./trace-context.ts";

/** Upper bounds of the buckets in seconds, for everything timed here. */
export const boundsS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60] as const;

/** An observation whose trace can be looked up. */
export interface Exemplar {
  /** The position of its bucket. */
  readonly bucket: number;
  readonly trace_id: string;
  readonly seconds: number;
  readonly at_ms: number;
}

/** The observations so far. */
export interface Observed {
  /** Number of observations in each bucket, each counted once in its smallest one; the last number counts those above all bounds. */
  readonly counts: number[];
  /** Sum of the observations in seconds. */
  readonly sum: number;
  /** The latest of each bucket, where that is not long ago. */
  readonly exemplars?: Exemplar[];
}

/** Longer than between two scrapes; what is older is no longer sent around. */
const exemplarMs = 120_000;

export class Histogram implements Observed {
  readonly counts: number[] = Array.from({ length: boundsS.length + 1 }, () => 0);
  sum = 0;
  readonly #latest = new Map<number, Exemplar>();

  /** @param trace becomes the exemplar, unless nothing was ever logged or recorded under its id */
  observe(seconds: number, trace?: TraceContext): void {
    let at = 0;
    while (at < boundsS.length && seconds > (boundsS[at] as number)) at++;
    this.counts[at] = (this.counts[at] as number) + 1;
    this.sum += seconds;
    if (trace?.isUsed) this.#latest.set(at, { bucket: at, trace_id: trace.ids.traceId, seconds, at_ms: Date.now() });
  }

  /** Starts a timer. The returned function stops it and records the observation, with the call that it is called in. */
  start(): () => void {
    const startedAtMs = performance.now();
    return () => this.observe((performance.now() - startedAtMs) / 1_000, currentTrace());
  }

  get exemplars(): Exemplar[] {
    const now = Date.now();
    return [...this.#latest.values()].filter(({ at_ms }) => now - at_ms < exemplarMs);
  }

  /** The observations as they are sent in messages. */
  get observed(): Observed {
    const { exemplars } = this;
    return { counts: [...this.counts], sum: this.sum, ...(exemplars.length > 0 ? { exemplars } : {}) };
  }
}
