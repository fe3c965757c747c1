/** What a worker has counted since its start. Sent to the gateways with every heartbeat, for Prometheus. */

import type { WorkerMetrics } from "../shared/bus/heartbeat.ts";
import { Histogram } from "../shared/util/histogram.ts";
import { currentTrace } from "../shared/util/trace-context.ts";

/** Why a worker refuses work that it could do at other times. */
export const refusals = ["cordoned", "draining", "sandboxes", "memory", "disk", "commands", "sessions"] as const;
export type Refusal = (typeof refusals)[number];

export class Counters {
  /** Calls being answered now. */
  calls = 0;
  /** Commands and sessions started. */
  executions = 0;
  sessions = 0;
  snapshots = 0;
  /** The longest pause of a sandbox for a snapshot. */
  pauseMsMax = 0;
  poolHits = 0;
  poolMisses = 0;
  /** Seconds from the call until the sandbox runs. */
  readonly creates = new Histogram();
  /** Seconds from the call until the command runs. */
  readonly starts = new Histogram();
  /** Seconds from the command's start to its end. */
  readonly runs = new Histogram();
  readonly pauses = new Histogram();
  readonly #refused = Object.fromEntries(refusals.map((reason) => [reason, 0])) as Record<Refusal, number>;

  refuse(reason: Refusal): void {
    this.#refused[reason]++;
  }

  notePause(milliseconds: number): void {
    this.snapshots++;
    this.pauses.observe(milliseconds / 1_000, currentTrace());
    this.pauseMsMax = Math.max(this.pauseMsMax, milliseconds);
  }

  /** @param poolSize containers waiting in the pool. */
  metrics(poolSize: number): WorkerMetrics {
    return {
      create: this.creates.observed,
      start: this.starts.observed,
      run: this.runs.observed,
      pause: this.pauses.observed,
      pool: { size: poolSize, hits: this.poolHits, misses: this.poolMisses },
      refused: { ...this.#refused },
    };
  }
}
