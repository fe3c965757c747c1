/** Makes the volume larger before it is full. */
import { inBackground } from "../../shared/util/background.ts";
import type { Logger } from "../../shared/util/log.ts";

/** What is kept free above the floor, so that writers do not reach it while the volume grows. */
const headroomBytes = 1024 ** 3;
/** The pause after a refusal: the disk may have room again. */
const refusedMs = 30_000;

export class VolumeGrowth {
  readonly #floorBytes: number;
  readonly #log: Logger;
  #grow: (() => Promise<void>) | undefined;
  #isGrowing = false;
  #refusedAtMs = Number.NEGATIVE_INFINITY;

  constructor(floorBytes: number, log: Logger) {
    this.#floorBytes = floorBytes;
    this.#log = log;
  }

  /** @param grow makes it larger by a step; rejects when it cannot be larger now */
  growBy(grow: () => Promise<void>): void {
    this.#grow = grow;
  }

  /** Whether it could not be made larger when it last had to be. */
  get isRefused(): boolean {
    return Number.isFinite(this.#refusedAtMs);
  }

  /** Begins to make it larger when there is too little free; call it periodically. */
  consider(freeBytes: number): void {
    const grow = this.#grow;
    const isDue = freeBytes < this.#floorBytes + headroomBytes && performance.now() - this.#refusedAtMs > refusedMs;
    if (!grow || this.#isGrowing || !isDue) return;
    this.#isGrowing = true;
    inBackground(this.#log, "the volume could not be made larger", async () => {
      try {
        await grow();
        this.#refusedAtMs = Number.NEGATIVE_INFINITY;
      } catch (error) {
        this.#refusedAtMs = performance.now();
        this.#log.debug({ err: error }, "the volume is not made larger now");
      } finally {
        this.#isGrowing = false;
      }
    });
  }
}
