/** Waiting for a condition instead of for a time. */
import { setTimeout as sleep } from "node:timers/promises";

/** Polls until the answer is neither undefined nor false. The deadline is generous: it only ends a hang. */
export async function until<T>(what: string, ask: () => Promise<T | undefined | false> | T | undefined | false, timeoutMs = 30_000): Promise<T> {
  let last: unknown;
  for (const deadline = Date.now() + timeoutMs; Date.now() < deadline; await sleep(50)) {
    try {
      const answer = await ask();
      if (answer !== undefined && answer !== false) return answer;
      last = answer;
    } catch (error) {
      last = error;
    }
  }
  throw new Error(`after ${timeoutMs} ms there is still not: ${what}`, { cause: last });
}
