/** How long to wait before a part that died is started again. */

const firstMs = 500;
const longestMs = 15_000;
const healthyMs = 30_000;

export class Backoff {
  #nextMs = firstMs;

  /** The pause after a run of `ranMs`: doubled each time, short again after a run that was healthy. */
  pauseMs(ranMs: number): number {
    if (ranMs >= healthyMs) this.#nextMs = firstMs;
    const pause = this.#nextMs;
    this.#nextMs = Math.min(longestMs, pause * 2);
    return pause;
  }
}
