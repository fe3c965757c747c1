/** Makes the volume larger ahead of its writers: a program can fill it faster than anybody could look. */
import { SandgateError } from "../../shared/errors.ts";
import type { Logger } from "../../shared/util/log.ts";

/** What is kept free beyond what has been promised, for snapshots of files that are replaced. */
const spareBytes = 1024 ** 3;
/** What is asked for beyond that, so that not every new sandbox needs a step. */
const aheadBytes = 8 * 1024 ** 3;
/** The pause after a refusal: the disk may have room again. */
const refusedMs = 30_000;

const isLost = (error: unknown): boolean => error instanceof SandgateError && error.code === "unavailable";

/** Makes the volume larger by at least this much if it can; rejects when it cannot be larger now. */
export type Grow = (moreBytes: number) => Promise<void>;

export class VolumeGrowth {
  readonly #floorBytes: number;
  readonly #log: Logger;
  #grow: Grow | undefined;
  #growing: Promise<void> | undefined;
  #refusedAtMs = Number.NEGATIVE_INFINITY;

  constructor(floorBytes: number, log: Logger) {
    this.#floorBytes = floorBytes;
    this.#log = log;
  }

  growBy(grow: Grow): void {
    this.#grow = grow;
  }

  /** Whether it could not be made larger when it last had to be. */
  get isRefused(): boolean {
    return Number.isFinite(this.#refusedAtMs);
  }

  /**
   * Makes it larger when too little is free, one step at a time.
   *
   * @param promisedBytes what sandboxes may write
   * @returns when the step is over, or when there is none. Never rejects.
   */
  async keepAhead(freeBytes: number, promisedBytes: number): Promise<void> {
    const moreBytes = this.#floorBytes + spareBytes + promisedBytes - freeBytes;
    const isResting = performance.now() - this.#refusedAtMs < refusedMs;
    if (!this.#grow || moreBytes <= 0 || isResting) return;
    this.#growing ??= this.#step(this.#grow, Math.ceil(moreBytes + aheadBytes)).finally(() => {
      this.#growing = undefined;
    });
    await this.#growing;
  }

  async #step(grow: Grow, moreBytes: number): Promise<void> {
    try {
      // What a helper that was lost has left half done, the next one completes.
      await grow(moreBytes).catch((error: unknown) => (isLost(error) ? grow(moreBytes) : Promise.reject(error)));
      this.#refusedAtMs = Number.NEGATIVE_INFINITY;
    } catch (error) {
      this.#refusedAtMs = performance.now();
      this.#log.debug({ err: error }, "the volume is not made larger now");
    }
  }
}
