/** Whether and when a call may be retried. */
import type { ErrorCode } from "../errors.ts";
import { backoffMs, jittered } from "../waiting.ts";
import { APIConnectionError, APIError, RateLimitError } from "./errors.ts";

const pauses = { firstMs: 500, maxMs: 8_000 };
/** If the server asks for a longer wait than this, the error is passed on to the caller. */
const retryAfterMaxMs = 60_000;
const jitterMs = 250;

const passing: ReadonlySet<number> = new Set([408, 429, 500, 502, 503, 504]);

/**
 * Milliseconds to wait before retrying a call that is safe to repeat; undefined if a retry is pointless.
 *
 * @param attempt the number of attempts before the failed one
 */
export function retryPauseMs(error: unknown, attempt: number): number | undefined {
  if (!(error instanceof APIError)) return undefined;
  const isPassing = error instanceof APIConnectionError || (error.status !== undefined && passing.has(error.status));
  if (!isPassing) return undefined;
  const asked = error.retryAfterMs;
  if (asked === undefined) return jittered(backoffMs(attempt, pauses));
  return asked > retryAfterMaxMs ? undefined : asked + Math.random() * jitterMs;
}

/** Milliseconds the server asks to wait after refusing a call for its rate; undefined for all other errors. */
export function rateWaitMs(error: unknown): number | undefined {
  if (!(error instanceof RateLimitError) || error.code !== ("rate_limited" satisfies ErrorCode)) return undefined;
  const asked = error.retryAfterMs;
  return asked === undefined || asked > retryAfterMaxMs ? undefined : asked + Math.random() * jitterMs;
}

/** Whether the server may have carried out the call in spite of this error. */
export function isUncertain(error: unknown): boolean {
  return !(error instanceof APIError && error.status !== undefined && error.status < 500);
}
