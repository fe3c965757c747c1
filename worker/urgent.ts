/** Tracks work that somebody waits for, so that background work can yield to it. */
import { until } from "../shared/waiting.ts";

/** Urgent work is often followed by more. */
const quietMs = 200;

export class Urgent {
  #running = 0;
  #lastEndMs = Number.NEGATIVE_INFINITY;

  get isRunning(): boolean {
    return this.#running > 0;
  }

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
   * Resolves when no urgent work runs or ran a moment ago, and after `waitMsMax` at the latest.
   *
   * @throws the reason of the signal.
   */
  async whenQuiet(waitMsMax: number, signal: AbortSignal): Promise<void> {
    const isQuiet = (): boolean => this.#running === 0 && performance.now() - this.#lastEndMs >= quietMs;
    await until(isQuiet, { timeoutMs: waitMsMax, pollMs: quietMs / 4, signal });
  }
}
