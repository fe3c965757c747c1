/** Durations counted in buckets, as in a Prometheus histogram. */

/** Upper bounds of the buckets in seconds, for everything timed here. */
export const boundsS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60] as const;

/** The observations so far. */
export interface Observed {
  /** Number of observations in each bucket, each counted once in its smallest one; the last number counts those above all bounds. */
  readonly counts: number[];
  /** Sum of the observations in seconds. */
  readonly sum: number;
}

export class Histogram implements Observed {
  readonly counts: number[] = Array.from({ length: boundsS.length + 1 }, () => 0);
  sum = 0;

  observe(seconds: number): void {
    let at = 0;
    while (at < boundsS.length && seconds > (boundsS[at] as number)) at++;
    this.counts[at] = (this.counts[at] as number) + 1;
    this.sum += seconds;
  }

  /** Starts a timer. The returned function stops it and records the observation. */
  start(): () => void {
    const startedAtMs = performance.now();
    return () => this.observe((performance.now() - startedAtMs) / 1_000);
  }

  /** The observations as they are sent in messages. */
  get observed(): Observed {
    return { counts: [...this.counts], sum: this.sum };
  }
}
