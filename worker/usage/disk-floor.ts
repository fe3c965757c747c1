/**
 * The floor of the host's disk: below it nothing new is taken, and of the sandboxes those are ended that go on growing,
 * the fastest first. One that sleeps, or reads, is never ended for what others have written.
 */
import type { DiskUse, FreeSpace } from "../runtime/filesystem/disk.ts";

/** This share of the files that a file system can have is kept free. */
const filesFloorShare = 0.02;
/** Who has taken less than this share of the floor is not what fills the disk. */
const growthShareMin = 1 / 64;
/** For so long after the floor was reached all sandboxes are measured anew, before the one that grew most is chosen. */
const settleMs = 2_000;

/** Why nothing new can be taken, or undefined when there is room for so much more. */
export function shortageOf(free: FreeSpace, floorBytes: number, more: DiskUse = { bytes: 0, files: 0 }): string | undefined {
  if (free.bytes - more.bytes < floorBytes) return "the host has too little free disk space";
  const hasFileLimit = free.filesMax > 0;
  if (hasFileLimit && free.files - more.files < free.filesMax * filesFloorShare) return "the host's disk has too few free inodes";
  return undefined;
}

/** A sandbox, as far as this is about it. */
export interface Writer {
  readonly use: DiskUse;
  /** When that was measured. */
  readonly measuredAtMs: number;
  /** Whether it can write: something runs in it. */
  readonly isActive: boolean;
}

export class DiskFloor<K extends object> {
  /** What each had when there was still room. */
  #before = new WeakMap<K, DiskUse>();
  #belowSinceMs: number | undefined;

  get isBelow(): boolean {
    return this.#belowSinceMs !== undefined;
  }

  /**
   * To be called again and again.
   *
   * @returns the one whose commands must end now, and none again before it has grown anew.
   */
  look(free: FreeSpace, floorBytes: number, writers: ReadonlyMap<K, Writer>, nowMs: number): K | undefined {
    if (!shortageOf(free, floorBytes)) {
      this.#belowSinceMs = undefined;
      this.#compareFromNow(writers);
      return undefined;
    }
    const since = this.#belowSinceMs ?? nowMs;
    this.#belowSinceMs = since;
    const active = [...writers].filter(([, { isActive }]) => isActive);
    const isKnown = active.every(([, { measuredAtMs }]) => measuredAtMs >= since);
    if (!isKnown && nowMs - since < settleMs) return undefined;
    const grown = active
      .map(([key, { use }]) => ({ key, share: this.#growthShare(key, use, free, floorBytes) }))
      .filter(({ share }) => share >= growthShareMin)
      .sort((one, other) => other.share - one.share)[0];
    // Only who grows after this end may be the next: others are not to blame for what is there.
    if (grown) this.#compareFromNow(writers);
    return grown?.key;
  }

  #compareFromNow(writers: ReadonlyMap<K, Writer>): void {
    for (const [key, { use, measuredAtMs }] of writers) if (measuredAtMs > 0) this.#before.set(key, use);
  }

  /** How much a sandbox has taken since there was room, as a share of the floor. One that was not measured then starts now. */
  #growthShare(key: K, use: DiskUse, { filesMax }: FreeSpace, floorBytes: number): number {
    const before = this.#before.get(key);
    if (!before) this.#before.set(key, use);
    const ofBytes = (use.bytes - (before ?? use).bytes) / Math.max(1, floorBytes);
    const ofFiles = filesMax > 0 ? (use.files - (before ?? use).files) / (filesMax * filesFloorShare) : 0;
    return Math.max(ofBytes, ofFiles);
  }
}
