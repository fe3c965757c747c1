/** Waiting for a condition instead of for a time. */
import { setTimeout as sleep } from "node:timers/promises";

const [pollMsMin, pollMsMax] = [50, 500];

/**
 * Polls until the answer is neither undefined nor false, and waits as long as the asking took.
 * The deadline is generous: it only ends a hang.
 */
export async function until<T>(what: string, ask: () => Promise<T | undefined | false> | T | undefined | false, timeoutMs = 60_000): Promise<T> {
  let last: unknown;
  let askedMs = 0;
  for (const deadline = Date.now() + timeoutMs; Date.now() < deadline; await sleep(Math.min(pollMsMax, Math.max(pollMsMin, askedMs)))) {
    const startedMs = Date.now();
    try {
      const answer = await ask();
      if (answer !== undefined && answer !== false) return answer;
      last = answer;
    } catch (error) {
      last = error;
    }
    askedMs = Date.now() - startedMs;
  }
  throw new Error(`after ${timeoutMs} ms there is still not: ${what}`, { cause: last });
}
