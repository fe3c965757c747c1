/** The load, and the free and shared memory, of the host. */
import { readFileSync } from "node:fs";
import { availableParallelism, freemem, loadavg } from "node:os";
import { sizesOf } from "../runtime/process/proc-text.ts";

export interface HostMemory {
  /** Memory still available to programs, including caches that the kernel would give up. */
  readonly availableBytes: number;
  /** Files in memory, System V segments and shared mappings of the whole machine. */
  readonly sharedBytes: number;
}

export function hostMemory(): HostMemory {
  const sizes = sizesOf(readFileSync("/proc/meminfo", "latin1"));
  return { availableBytes: sizes.get("MemAvailable") ?? freemem(), sharedBytes: sizes.get("Shmem") ?? 0 };
}

export function loadPerCpu(): number {
  const [load = 0] = loadavg();
  return Math.round((load / availableParallelism()) * 100) / 100;
}
