/** The file systems that hold sandboxes: their free space, and which sandboxes must stop when there is too little. */
import type { Config } from "../../shared/config.ts";
import type { Logger } from "../../shared/util/log.ts";
import { type DiskUse, type FreeSpace, freeSpace, freeSpaceNow } from "../runtime/filesystem/disk.ts";
import type { LiveSandbox } from "../sandboxes/registry.ts";
import { DiskFloor, shortageOf, type Writer } from "./disk-floor.ts";
import { type Grow, VolumeGrowth } from "./volume-growth.ts";

/** The share of the floor that applies within a volume whose growth keeps to the floor of the disk below it. */
const imageFloorShare = 1 / 8;

interface Disk {
  readonly dir: string;
  /** Below it, nothing new is accepted. */
  readonly floorBytes: number;
  readonly floor: DiskFloor<LiveSandbox>;
  free: FreeSpace;
}

export class Disks {
  /** Holds images, and the sandboxes that an earlier version had Podman make from them. */
  readonly #ofImages: Disk;
  /** Holds records and, without a volume, snapshots and sandboxes. */
  readonly #ofData: Disk;
  /** Holds snapshots and sandboxes; undefined without one. */
  readonly #volume: Disk | undefined;
  /** Whether the volume takes its space from the disk of the data directory. */
  readonly #isImage: boolean;
  readonly #growth: VolumeGrowth;

  constructor({ storageDir, dataDir, diskFloorBytes, volume, volumeDir }: Config, log: Logger) {
    const unknown = { bytes: Number.MAX_SAFE_INTEGER, files: 0, filesMax: 0 };
    const diskAt = (dir: string, floorBytes = diskFloorBytes): Disk => ({ dir, floorBytes, floor: new DiskFloor(), free: unknown });
    this.#ofImages = diskAt(storageDir);
    this.#ofData = diskAt(dataDir);
    this.#isImage = volume === "";
    const volumeFloorBytes = this.#isImage ? diskFloorBytes * imageFloorShare : diskFloorBytes;
    this.#volume = volumeDir ? diskAt(volumeDir, volumeFloorBytes) : undefined;
    this.#growth = new VolumeGrowth(volumeFloorBytes, log);
  }

  /** From now on, the volume is made larger before it is full. */
  growBy(grow: Grow): void {
    this.#growth.growBy(grow);
  }

  /** Reads the free space of all disks. @param promisedBytes what sandboxes may write to the volume; it begins to grow if that is too much */
  async refresh(promisedBytes: number): Promise<void> {
    for (const disk of this.#all) disk.free = await freeSpace(disk.dir);
    if (this.#volume) void this.#growth.keepAhead(this.#volume.free.bytes, promisedBytes);
  }

  /** Resolves when sandboxes can write this much to the volume, or it cannot be made larger now. */
  async makeRoom(promisedBytes: number): Promise<void> {
    const volume = this.#volume;
    // A step that had begun before may be too small.
    for (let step = 0; volume && step < 2 && volume.free.bytes < volume.floorBytes + promisedBytes; step++) {
      await this.#growth.keepAhead(volume.free.bytes, promisedBytes);
      volume.free = await freeSpace(volume.dir);
    }
  }

  /** The free space of the fullest disk at the last refresh; that of a volume only if it cannot grow. */
  get freeBytes(): number {
    const counting = this.#all.filter((disk) => disk !== this.#volume || !this.#isImage || this.#growth.isRefused);
    return Math.min(...counting.map(({ free }) => free.bytes));
  }

  /** Why `more` cannot be stored on this host, or undefined. Nothing is refused for what was only so at the last refresh. */
  shortage(more?: DiskUse): string | undefined {
    for (const disk of this.#all) {
      if (!shortageOf(disk.free, disk.floorBytes, more)) continue;
      disk.free = freeSpaceNow(disk.dir);
      const shortage = shortageOf(disk.free, disk.floorBytes, more);
      if (shortage) return shortage;
    }
    return undefined;
  }

  /** Whether the sandbox's disk was below its floor at the last check. */
  isBelowFloor(sandbox: LiveSandbox): boolean {
    return this.#of(sandbox).some(({ floor }) => floor.isBelow);
  }

  /** The sandboxes that are filling a disk below its floor, with the reason to end their commands. */
  *offenders(
    sandboxes: readonly LiveSandbox[],
    writerOf: (sandbox: LiveSandbox) => Writer,
  ): Generator<{ readonly sandbox: LiveSandbox; readonly reason: string }> {
    for (const disk of this.#all) {
      const writers = new Map(sandboxes.filter((one) => one.container && this.#of(one).includes(disk)).map((one) => [one, writerOf(one)]));
      const sandbox = disk.floor.look(disk.free, disk.floorBytes, writers, Date.now());
      const shortage = shortageOf(disk.free, disk.floorBytes);
      if (sandbox) yield { sandbox, reason: `out of storage: ${shortage}, and the sandbox was taking more of it` };
    }
  }

  get #all(): readonly Disk[] {
    return [this.#ofImages, this.#ofData, ...(this.#volume ? [this.#volume] : [])];
  }

  /** The disks that fill up with what the sandbox writes. */
  #of({ record, container }: LiveSandbox): readonly Disk[] {
    if (!record.root) return [this.#ofImages];
    const volume = this.#volume;
    if (!volume || !container?.writableLayer?.startsWith(`${volume.dir}/`)) return [this.#ofData];
    return this.#isImage ? [volume, this.#ofData] : [volume];
  }
}
