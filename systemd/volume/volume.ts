/** The data volume: a btrfs file system in which every sandbox has a subvolume with a limit that the kernel enforces. */
import { statfs } from "node:fs/promises";

/** The file behind a volume that the set-up has made, and how large it may become. */
export interface VolumeImage {
  readonly file: string;
  readonly bytesMax: number;
  /** What growing leaves free on the disk that holds the file. */
  readonly floorBytes: number;
}

export interface Volume {
  /** Where it is mounted. Its top folder belongs to the worker's account. */
  readonly dir: string;
  /** Absent for a file system of the operator, who also makes that one larger. */
  readonly image?: VolumeImage;
}

/** Why there is no volume, in words for the operator. Sandboxes are in plain folders then, and the worker watches their size. */
export interface NoVolume {
  readonly reason: string;
}

export const isVolume = (found: Volume | NoVolume): found is Volume => "dir" in found;

/** The size of a file system. */
export async function fileSystemBytes(dir: string): Promise<number> {
  const { blocks, bsize } = await statfs(dir);
  return blocks * bsize;
}
