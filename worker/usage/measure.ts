/** What the processes of a container use: read from its cgroup if it has its own, otherwise from /proc. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Container } from "../runtime/container/container.ts";
import { usageOf } from "../runtime/process/proc.ts";

/** Clock ticks of /proc per second (USER_HZ, fixed on Linux). */
const ticksPerSecond = 100;

/** A reading of the counters. CPU time never decreases while the same processes live. */
export interface Reading {
  readonly memoryBytes: number;
  readonly cpuSeconds: number;
  /** CPU seconds of each process, when processes are counted one by one. */
  readonly byProcess: ReadonlyMap<number, number> | undefined;
}

/** Reads the counters now. `members` are the processes in the container's pid namespace. */
export function readCounters(container: Container, members: readonly number[]): Reading {
  return (container.cgroup && fromCgroup(container.cgroup)) || fromProcesses(members);
}

function fromCgroup(cgroup: string): Reading | undefined {
  try {
    const memoryBytes = Number(readFileSync(join(cgroup, "memory.current"), "utf8"));
    const cpuMicros = Number(/^usage_usec (\d+)/m.exec(readFileSync(join(cgroup, "cpu.stat"), "utf8"))?.[1] ?? 0);
    return { memoryBytes, cpuSeconds: cpuMicros / 1e6, byProcess: undefined };
  } catch {
    return undefined; // No controllers for this container.
  }
}

/** The part of the container's own kernel memory limit used by files in memory, System V segments and shared mappings. */
export function sharedOfGroup({ cgroup }: Pick<Container, "cgroup">): number {
  try {
    return Number(/^shmem (\d+)/m.exec(readFileSync(join(cgroup ?? "", "memory.stat"), "utf8"))?.[1] ?? 0);
  } catch {
    return 0;
  }
}

function fromProcesses(members: readonly number[]): Reading {
  const byProcess = new Map<number, number>();
  let memoryBytes = 0;
  for (const pid of members) {
    const usage = usageOf(pid);
    if (!usage) continue;
    memoryBytes += usage.memoryBytes;
    byProcess.set(pid, usage.cpuTicks / ticksPerSecond);
  }
  return { memoryBytes, cpuSeconds: 0, byProcess };
}

/** CPU seconds used between two readings. On /proc, processes that began and ended in between are missed. */
export function cpuSecondsBetween(before: Reading, after: Reading): number {
  if (!after.byProcess) return Math.max(0, after.cpuSeconds - before.cpuSeconds);
  let seconds = 0;
  for (const [pid, total] of after.byProcess) seconds += Math.max(0, total - (before.byProcess?.get(pid) ?? 0));
  return seconds;
}
