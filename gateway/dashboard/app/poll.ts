/** Polling while the page is visible. */
import { APIError } from "./api.ts";

export interface Poll {
  /** Polls now instead of waiting for the next turn. */
  now(): void;
}

export interface PollOptions {
  readonly everyMs: number | (() => number);
  readonly signal: AbortSignal;
  readonly work: () => Promise<void>;
  /** Called for every failed turn; polling continues. */
  readonly failed: (error: unknown) => void;
}

/** Runs `work` repeatedly while the page is visible. Respects `Retry-After`. */
export function poll({ everyMs, signal, work, failed }: PollOptions): Poll {
  let wake: () => void = () => {};
  const now = (): void => wake();
  const turns = async (): Promise<void> => {
    while (!signal.aborted) {
      let waitMs = typeof everyMs === "number" ? everyMs : everyMs();
      try {
        await work();
        if (typeof everyMs !== "number") waitMs = everyMs();
      } catch (error) {
        if (signal.aborted) return;
        if (!(error instanceof APIError)) console.error(error);
        if (error instanceof APIError && error.retryAfterMs) waitMs = Math.max(waitMs, error.retryAfterMs);
        failed(error);
      }
      await pause(waitMs, signal, (woken) => {
        wake = woken;
      });
    }
  };
  void turns();
  return { now };
}

/** Resolves after the time, but not before the page is visible, or when woken. */
function pause(waitMs: number, signal: AbortSignal, wakeable: (wake: () => void) => void): Promise<void> {
  return new Promise((resolve) => {
    let due = false;
    const end = (): void => {
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", seen);
      document.removeEventListener("sandgate:reconnected", end);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const seen = (): void => {
      if (due && !document.hidden) end();
    };
    const timer = setTimeout(() => {
      due = true;
      seen();
    }, waitMs);
    document.addEventListener("visibilitychange", seen);
    document.addEventListener("sandgate:reconnected", end);
    signal.addEventListener("abort", end);
    wakeable(end);
  });
}
