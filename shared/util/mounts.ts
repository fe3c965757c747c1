/** What is mounted where (proc(5), /proc/PID/mountinfo). */
import { readFileSync, statfsSync } from "node:fs";

export interface Mount {
  /** Major and minor number: the same for all mounts of one file system. */
  readonly device: string;
  /** The folder of the file system that is mounted. */
  readonly root: string;
  readonly point: string;
  readonly type: string;
  readonly source: string;
  readonly options: readonly string[];
  /** Those of the file system, which all of its mounts share. */
  readonly systemOptions: readonly string[];
}

/** What is mounted at a folder, as a process sees it: the last mount hides those below it. @param dir without links */
export function mountAt(dir: string, pid: number | "self" = "self"): Mount | undefined {
  return parseMounts(readFileSync(`/proc/${pid}/mountinfo`, "utf8")).findLast(({ point }) => point === dir);
}

export function parseMounts(mountinfo: string): Mount[] {
  return mountinfo.split("\n").flatMap((line) => {
    const [mount = "", system = ""] = line.split(" - ");
    const [, , device, root, point, options] = mount.split(" ");
    const [type, source, more = ""] = system.split(" ");
    if (!device || !root || !point || !options || !type || !source) return [];
    return [
      { device, root: unescaped(root), point: unescaped(point), type, source: unescaped(source), options: options.split(","), systemOptions: more.split(",") },
    ];
  });
}

/** The kernel writes spaces and the like as three octal digits. */
const unescaped = (text: string): string => text.replace(/\\(\d{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));

/** The type of file systems in memory (statfs(2), TMPFS_MAGIC). */
export const inMemory = 0x01021994;

/** Whether the files of a folder are in memory. @throws {Error} when it is not there */
export const isInMemory = (dir: string): boolean => statfsSync(dir).type === inMemory;
