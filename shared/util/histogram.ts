/** How long things take, counted as Prometheus counts it: how many were done within each of some bounds. */

/** Upper bounds in seconds, of everything that is timed here. */
export const boundsS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60] as const;

/** What was observed so far. */
export interface Observed {
  /** By the first bound that each kept; the last number is of those beyond all bounds. */
  readonly counts: number[];
  /** Seconds in all. */
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

  /** Starts a clock; what it returns stops it, and counts. */
  start(): () => void {
    const startedAtMs = performance.now();
    return () => this.observe((performance.now() - startedAtMs) / 1_000);
  }

  /** As it is sent in messages. */
  get observed(): Observed {
    return { counts: [...this.counts], sum: this.sum };
  }
}
