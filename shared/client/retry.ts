/** When a call may be sent once more, and after which time. */
import type { ErrorCode } from "../errors.ts";
import { backoffMs, jittered } from "../waiting.ts";
import { APIConnectionError, APIError, RateLimitError } from "./errors.ts";

const pauses = { firstMs: 500, maxMs: 8_000 };
/** A server that asks for more patience than this is told on to the caller. */
const retryAfterMaxMs = 60_000;
const jitterMs = 250;

const passing: ReadonlySet<number> = new Set([408, 429, 500, 502, 503, 504]);

/**
 * How long to wait before the next try of a call that can be repeated, in milliseconds; undefined when there is no point.
 *
 * @param attempt how many tries there were before the one that failed
 */
export function retryPauseMs(error: unknown, attempt: number): number | undefined {
  if (!(error instanceof APIError)) return undefined;
  const isPassing = error instanceof APIConnectionError || (error.status !== undefined && passing.has(error.status));
  if (!isPassing) return undefined;
  const asked = error.retryAfterMs;
  if (asked === undefined) return jittered(backoffMs(attempt, pauses));
  return asked > retryAfterMaxMs ? undefined : asked + Math.random() * jitterMs;
}

/** How long a server asks to wait that has refused a call for its rate, in milliseconds; undefined for every other error. */
export function rateWaitMs(error: unknown): number | undefined {
  if (!(error instanceof RateLimitError) || error.code !== ("rate_limited" satisfies ErrorCode)) return undefined;
  const asked = error.retryAfterMs;
  return asked === undefined || asked > retryAfterMaxMs ? undefined : asked + Math.random() * jitterMs;
}

/** Whether the server may have carried out the call although it answered with this, or not at all. */
export function isUncertain(error: unknown): boolean {
  return !(error instanceof APIError && error.status !== undefined && error.status < 500);
}
