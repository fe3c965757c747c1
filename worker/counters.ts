/** What a worker counts of its work since it was started. Gateways hear it with every heartbeat and tell Prometheus. */

import type { WorkerMetrics } from "../shared/bus/heartbeat.ts";
import { Histogram } from "../shared/util/histogram.ts";

/** Why a worker refuses what it could do at other times. */
export const refusals = ["cordoned", "draining", "sandboxes", "memory", "disk", "commands", "sessions"] as const;
export type Refusal = (typeof refusals)[number];

export class Counters {
  /** Calls being answered now. */
  calls = 0;
  /** Commands and sessions started. */
  executions = 0;
  sessions = 0;
  snapshots = 0;
  /** The longest time that a sandbox stood still for a snapshot. */
  pauseMsMax = 0;
  poolHits = 0;
  poolMisses = 0;
  /** From the call to the sandbox that runs. */
  readonly creates = new Histogram();
  /** From the call to the command that runs. */
  readonly starts = new Histogram();
  /** From the command's start to its end. */
  readonly runs = new Histogram();
  readonly pauses = new Histogram();
  readonly #refused = Object.fromEntries(refusals.map((reason) => [reason, 0])) as Record<Refusal, number>;

  refuse(reason: Refusal): void {
    this.#refused[reason]++;
  }

  notePause(milliseconds: number): void {
    this.snapshots++;
    this.pauses.observe(milliseconds / 1_000);
    this.pauseMsMax = Math.max(this.pauseMsMax, milliseconds);
  }

  /** @param poolSize containers that wait to be taken. */
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
