/** Work that somebody waits for, so that other work can give way to it. */
import { until } from "../shared/waiting.ts";

/** What was urgent is often followed by more of it. */
const quietMs = 200;

export class Urgent {
  #running = 0;
  #lastEndMs = Number.NEGATIVE_INFINITY;

  async run<T>(task: () => Promise<T>): Promise<T> {
    this.#running++;
    try {
      return await task();
    } finally {
      this.#running--;
      this.#lastEndMs = performance.now();
    }
  }

  /**
   * Resolves when nothing urgent runs and nothing did a moment ago, after `waitMsMax` in any case.
   *
   * @throws the reason of the signal.
   */
  async whenQuiet(waitMsMax: number, signal: AbortSignal): Promise<void> {
    const isQuiet = (): boolean => this.#running === 0 && performance.now() - this.#lastEndMs >= quietMs;
    await until(isQuiet, { timeoutMs: waitMsMax, pollMs: quietMs / 4, signal });
  }
}
