/** What is left of the host's memory and disk. */
import { readFileSync } from "node:fs";
import { availableParallelism, freemem, loadavg } from "node:os";
import { sizesOf } from "../runtime/process/proc-text.ts";

export interface HostMemory {
  /** Memory that programs can still get, caches that the kernel would give up included. */
  readonly availableBytes: number;
  /** Files in memory, System V's segments and shared mappings of the whole machine. */
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
