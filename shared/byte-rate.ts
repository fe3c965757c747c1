import { pause } from "./waiting.ts";

/** Limits a flow of bytes to a number of bytes per second. */
export class ByteRate {
  readonly #bytesPerS: number;
  /** When the bytes let through so far are paid for at the allowed rate. */
  #paidUntilMs = 0;

  constructor(bytesPerS: number) {
    this.#bytesPerS = bytesPerS;
  }

  /** Resolves when the next `bytes` may pass. Idle time earns no credit. */
  async take(bytes: number, signal?: AbortSignal): Promise<void> {
    const waitMs = this.#paidUntilMs - performance.now();
    if (waitMs > 0) await pause(waitMs, signal);
    this.#paidUntilMs = Math.max(performance.now() - 1, this.#paidUntilMs) + (bytes / this.#bytesPerS) * 1_000;
  }
}
