/**
 * The free-space floor of a host disk. Below it, nothing new is accepted, and sandboxes whose files keep growing are ended,
 * fastest growth first. A sandbox that sleeps or only reads is never ended for what others wrote.
 */
import type { DiskUse, FreeSpace } from "../runtime/filesystem/disk.ts";

/** Share of a file system's inodes that is kept free. */
const filesFloorShare = 0.02;
/** A sandbox that grew by less than this share of the floor is not considered a cause. */
const growthShareMin = 1 / 64;
/** Time to measure all sandboxes again after the floor is reached, before the one that grew most is chosen. */
const settleMs = 2_000;

/** Why nothing new can be stored, or undefined when there is room for `more`. */
export function shortageOf(free: FreeSpace, floorBytes: number, more: DiskUse = { bytes: 0, files: 0 }): string | undefined {
  if (free.bytes - more.bytes < floorBytes) return "the host has too little free disk space";
  const hasFileLimit = free.filesMax > 0;
  if (hasFileLimit && free.files - more.files < free.filesMax * filesFloorShare) return "the host's disk has too few free inodes";
  return undefined;
}

/** What the floor needs to know about a sandbox. */
export interface Writer {
  readonly use: DiskUse;
  /** When `use` was measured. */
  readonly measuredAtMs: number;
  /** Whether it can write, that is, whether anything runs in it. */
  readonly isActive: boolean;
}

export class DiskFloor<K extends object> {
  /** The use of each sandbox when the disk last had room. */
  #before = new WeakMap<K, DiskUse>();
  #belowSinceMs: number | undefined;

  get isBelow(): boolean {
    return this.#belowSinceMs !== undefined;
  }

  /**
   * Checks the floor; call it periodically.
   *
   * @returns the sandbox whose commands must end now. It is not returned again until it has grown further.
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
    // Growth counts from here: only a sandbox that grows after this one was ended may be the next.
    if (grown) this.#compareFromNow(writers);
    return grown?.key;
  }

  #compareFromNow(writers: ReadonlyMap<K, Writer>): void {
    for (const [key, { use, measuredAtMs }] of writers) if (measuredAtMs > 0) this.#before.set(key, use);
  }

  /** How much a sandbox has grown since there was room, as a share of the floor. Without an earlier measurement, it starts at zero. */
  #growthShare(key: K, use: DiskUse, { filesMax }: FreeSpace, floorBytes: number): number {
    const before = this.#before.get(key);
    if (!before) this.#before.set(key, use);
    const ofBytes = (use.bytes - (before ?? use).bytes) / Math.max(1, floorBytes);
    const ofFiles = filesMax > 0 ? (use.files - (before ?? use).files) / (filesMax * filesFloorShare) : 0;
    return Math.max(ofBytes, ofFiles);
  }
}
