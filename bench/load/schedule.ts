/** When arrivals are due. */
import type { Phase } from "./workload.ts";

export interface Schedule {
  readonly name: string;
  /** Arrivals a second; absent when they come by number. */
  readonly rate?: number;
  /** Milliseconds after the start, ascending; undefined for an arrival that comes when the one before has ended. */
  readonly arrivalsMs: readonly (number | undefined)[];
  /** What was not sent by then is not sent at all; undefined if everything is. */
  readonly windowMs?: number;
}

/** Arrivals at even distances. @param rate a second */
export function atRate(rate: number, windowMs: number, name = `${rate}/s`): Schedule {
  const count = Math.max(1, Math.round((rate * windowMs) / 1_000));
  return { name, rate, windowMs, arrivalsMs: Array.from({ length: count }, (_, index) => (index * 1_000) / rate) };
}

export function ofPhase({ name, count, everyMs }: Phase): Schedule {
  return { name, arrivalsMs: Array.from({ length: count }, (_, index) => (everyMs === undefined ? undefined : index * everyMs)) };
}

/** The first part of a window, in which a deployment that was idle has fewer ends than arrivals. */
const startShare = 0.25;

/**
 * How many actions ended a second. At a fixed rate, counted while arrivals came and without the start, so that it is the rate
 * itself if the deployment keeps up, however long an action takes.
 *
 * @param endedMs when actions have ended successfully, in milliseconds after the start
 */
export function achievedPerS({ windowMs }: Schedule, endedMs: readonly number[]): number {
  const toMs = windowMs ?? Math.max(0, ...endedMs.slice(-1));
  const fromMs = windowMs === undefined ? 0 : windowMs * startShare;
  const ended = endedMs.filter((ms) => ms >= fromMs && ms <= toMs).length;
  return toMs > fromMs ? (ended * 1_000) / (toMs - fromMs) : 0;
}
