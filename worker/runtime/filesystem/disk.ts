/** Disk space: of a sandbox's writable layer and of the host. */
import { type StatsFs, statfsSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { runBulk } from "../process/run.ts";

/** Millions of files on a slow disk take minutes. */
const measureTimeoutMs = 600_000;

/** What files take on disk: their bytes and their number, including folders. */
export interface DiskUse {
  readonly bytes: number;
  readonly files: number;
}

/** One walk for both; a file with several names counts once. Relative names keep it working in trees deeper than the longest path. */
const measureScript = `find "$1" -xdev -printf '%b %y %n %i\\n' | awk '$2 == "d" || $3 == 1 || !seen[$4]++ { blocks += $1; files++ } END { printf "%.0f %d\\n", blocks * 512, files }'`;

/** What a sandbox's writable layer takes on disk, or undefined when it could not be measured. */
export async function layerUse(dir: string): Promise<DiskUse | undefined> {
  // find's exit code also reports files that vanish during the walk; the sum is valid all the same.
  const result = await runBulk("sh", ["-c", measureScript, "sh", dir], { timeoutMs: measureTimeoutMs });
  const [bytes, files] = result.stdout.split(" ").map((text) => Number.parseInt(text, 10));
  return bytes === undefined || files === undefined || Number.isNaN(bytes) || files === 0 ? undefined : { bytes, files };
}

/** The space left for an unprivileged user on a file system. */
export interface FreeSpace extends DiskUse {
  /** The total number of files that the file system can have; 0 when it has no such limit. */
  readonly filesMax: number;
}

const freeOf = ({ bavail, bsize, files, ffree }: StatsFs): FreeSpace => ({ bytes: bavail * bsize, files: ffree, filesMax: files });

/** The space left on the file system that holds the path. */
export const freeSpace = async (path: string): Promise<FreeSpace> => freeOf(await statfs(path));

/** The same at once, which keeps this process waiting for the file system. */
export const freeSpaceNow = (path: string): FreeSpace => freeOf(statfsSync(path));
