/** Where images of processes lie, and what their disk keeps free: the worker asks before it has one made, but a hostile one would not. */
import { readdirSync, readFileSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { join } from "node:path";
import { attempt } from "../../../shared/util/attempt.ts";
import type { Instance } from "../../base/instance.ts";
import { Refusal } from "../refusal.ts";

export interface ImagePlace {
  /** A folder of root's; made when it is needed. */
  readonly dir: string;
  readonly floorBytes: number;
  /** Of the key with which images are sealed that leave the machine. */
  readonly keyFile: string;
}

export const imagePlaceOf = ({ paths, config }: Pick<Instance, "paths" | "config">): ImagePlace => ({
  dir: paths.memory,
  floorBytes: config.diskFloorBytes,
  keyFile: paths.memoryKey,
});

/** @param bytes what is to be written there @throws {Refusal} if the disk would have less left than its floor; files alone may still be taken then */
export async function refuseWithoutRoom({ dir, floorBytes }: Pick<ImagePlace, "dir" | "floorBytes">, bytes: number): Promise<void> {
  const { bavail, bsize } = await statfs(dir);
  if (bavail * bsize - bytes < floorBytes) throw new Refusal("refused", "the worker's disk has no room for it (SANDGATE_DISK_FLOOR_BYTES)");
}

const kiB = 1024;
const ownMemory = /^(?:RssAnon|RssShmem|VmSwap):\s+(\d+) kB$/gm;

/** What the memory of a control group's processes takes at most in an image, those of the groups below included. */
export function memoryOf(groupFolder: string): number {
  const processes = attempt(() => readFileSync(join(groupFolder, "cgroup.procs"), "utf8")) ?? "";
  const own = processes.split("\n").filter(Boolean).map(memoryOfProcess);
  const below = (attempt(() => readdirSync(groupFolder, { withFileTypes: true })) ?? []).filter((entry) => entry.isDirectory());
  return [...own, ...below.map(({ name }) => memoryOf(join(groupFolder, name)))].reduce((sum, bytes) => sum + bytes, 0);
}

/** A process that has ended by now has none. */
function memoryOfProcess(pid: string): number {
  const status = attempt(() => readFileSync(`/proc/${pid}/status`, "utf8")) ?? "";
  return [...status.matchAll(ownMemory)].reduce((sum, [, kilobytes]) => sum + Number(kilobytes) * kiB, 0);
}
