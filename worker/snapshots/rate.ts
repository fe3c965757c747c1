/** Keeps what passes below so many bytes a second. */
import { pause } from "../../shared/waiting.ts";

export class ByteRate {
  readonly #bytesPerS: number;
  /** When everything let through so far has had its time. */
  #paidUntilMs = 0;

  constructor(bytesPerS: number) {
    this.#bytesPerS = bytesPerS;
  }

  /** Resolves when the next `bytes` may pass. Time in which nothing was asked for is not saved up. */
  async take(bytes: number, signal: AbortSignal): Promise<void> {
    const waitMs = this.#paidUntilMs - performance.now();
    if (waitMs > 0) await pause(waitMs, signal);
    this.#paidUntilMs = Math.max(performance.now() - 1, this.#paidUntilMs) + (bytes / this.#bytesPerS) * 1_000;
  }
}
