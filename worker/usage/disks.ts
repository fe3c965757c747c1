/** The file systems that hold sandboxes: their free space, and which sandboxes must stop when there is too little. */
import type { Config } from "../../shared/config.ts";
import { type DiskUse, type FreeSpace, freeSpace } from "../runtime/filesystem/disk.ts";
import type { LiveSandbox } from "../sandboxes/registry.ts";
import { DiskFloor, shortageOf, type Writer } from "./disk-floor.ts";

interface Disk {
  readonly dir: string;
  readonly floor: DiskFloor<LiveSandbox>;
  free: FreeSpace;
}

export class Disks {
  readonly #fromImages: Disk;
  /** Holds snapshots and the sandboxes restored from them. */
  readonly #restored: Disk;
  readonly #floorBytes: number;

  constructor({ storageDir, dataDir, diskFloorBytes }: Config) {
    const unknown = { bytes: Number.MAX_SAFE_INTEGER, files: 0, filesMax: 0 };
    const diskAt = (dir: string): Disk => ({ dir, floor: new DiskFloor(), free: unknown });
    this.#fromImages = diskAt(storageDir);
    this.#restored = diskAt(dataDir);
    this.#floorBytes = diskFloorBytes;
  }

  /** Reads the free space of all disks. */
  async refresh(): Promise<void> {
    for (const disk of this.#all) disk.free = await freeSpace(disk.dir);
  }

  /** The free space of the fullest disk at the last refresh. */
  get freeBytes(): number {
    return Math.min(...this.#all.map(({ free }) => free.bytes));
  }

  /** Why `more` cannot be stored on this host, or undefined. */
  shortage(more?: DiskUse): string | undefined {
    return this.#all.map(({ free }) => shortageOf(free, this.#floorBytes, more)).find(Boolean);
  }

  /** Whether the sandbox's disk was below its floor at the last check. */
  isBelowFloor(sandbox: LiveSandbox): boolean {
    return this.#of(sandbox).floor.isBelow;
  }

  /** The sandboxes that are filling a disk below its floor, with the reason to end their commands. */
  *offenders(
    sandboxes: readonly LiveSandbox[],
    writerOf: (sandbox: LiveSandbox) => Writer,
  ): Generator<{ readonly sandbox: LiveSandbox; readonly reason: string }> {
    for (const disk of this.#all) {
      const writers = new Map(sandboxes.filter((one) => one.container && this.#of(one) === disk).map((one) => [one, writerOf(one)]));
      const sandbox = disk.floor.look(disk.free, this.#floorBytes, writers, Date.now());
      const shortage = shortageOf(disk.free, this.#floorBytes);
      if (sandbox) yield { sandbox, reason: `out of storage: ${shortage}, and the sandbox was taking more of it` };
    }
  }

  get #all(): readonly Disk[] {
    return [this.#fromImages, this.#restored];
  }

  #of({ record }: LiveSandbox): Disk {
    return record.root ? this.#restored : this.#fromImages;
  }
}
