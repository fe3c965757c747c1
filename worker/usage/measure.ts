/** What the processes of a container use: as the kernel counts it for its control group if it has one, otherwise from /proc. */
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
export function readCounters({ group }: Pick<Container, "group">, members: readonly number[]): Reading {
  const { memoryBytes, cpuSeconds } = group?.usage() ?? {};
  if (memoryBytes === undefined || cpuSeconds === undefined) return fromProcesses(members);
  return { memoryBytes, cpuSeconds, byProcess: undefined };
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
