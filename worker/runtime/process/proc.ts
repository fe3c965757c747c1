/** Reads /proc for the processes of sandboxes, and kills whole process trees for good. */
import { readdirSync, readFileSync } from "node:fs";
import { attempt } from "../../../shared/util/attempt.ts";
import { targetOf, withRealUser } from "../../../shared/util/libc.ts";
import { processIds, statFields, statOf } from "../../../shared/util/proc.ts";
import { pause } from "../../../shared/waiting.ts";
import { residentBytes, sizesOf } from "./proc-text.ts";

/** How many rounds to wait for processes that a kernel call keeps from dying. */
const killRoundsMax = 400;
const killPauseMs = 5;
const stopRoundsMax = 1_000;
const stopAllRoundsMax = 30;

/** Undefined when the process has gone, which is no error here. */
const read = (path: string): string | undefined => attempt(() => readFileSync(path, "latin1"));

/** Process ids of the children of all threads of a process. */
export function childrenOf(pid: number): number[] {
  const threads = attempt(() => readdirSync(`/proc/${pid}/task`)) ?? [];
  return threads.flatMap((thread) => (read(`/proc/${pid}/task/${thread}/children`) ?? "").split(" ").filter(Boolean).map(Number));
}

/** Ids of the threads of a process; none when it is gone. */
export const threadsOf = (pid: number): number[] => (attempt(() => readdirSync(`/proc/${pid}/task`)) ?? []).map(Number);

/** Signals a process if it is in this pid namespace; under a fork bomb, ids of dead processes are soon reused by unrelated ones. */
export function signal(pid: number, name: NodeJS.Signals, space: string | undefined): void {
  if (space && pidNamespaceOf(pid) === space) sendSignal(pid, pid, name);
}

/**
 * Sends a signal, as the user of the receiver where we may not: the user namespace of a copy is not below ours, but we may be any
 * of its users. Does nothing if that user is not ours to be, or the receiver is gone.
 *
 * @param to as kill(2) has it @param pid the process whose user it is
 */
export function sendSignal(to: number, pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(to, name);
  } catch (error) {
    const user = (error as NodeJS.ErrnoException).code === "EPERM" ? userOf(pid) : undefined;
    if (user !== undefined) attempt(() => withRealUser(user, () => process.kill(to, name)));
  }
}

/** The real user id of a process, as our user namespace has it; undefined when it is gone. */
export function userOf(pid: number): number | undefined {
  const id = /^Uid:\s+(\d+)/m.exec(read(`/proc/${pid}/status`) ?? "")?.[1];
  return id === undefined ? undefined : Number(id);
}

/** The one-letter state of a process's first thread, or of the given one; undefined when it is gone. */
function stateOf(pid: number, thread = String(pid)): string | undefined {
  const stat = read(`/proc/${pid}/task/${thread}/stat`);
  return stat && statFields(stat)[0];
}

/** Whether all threads of a process are in one of these states. The first thread may end or stop before the others. */
function areAllIn(pid: number, states: readonly (string | undefined)[]): boolean {
  if (!states.includes(stateOf(pid))) return false;
  const threads = attempt(() => readdirSync(`/proc/${pid}/task`)) ?? [];
  return threads.every((thread) => states.includes(stateOf(pid, thread)));
}

/** Whether a process is stopped or dead. */
export const isStopped = (pid: number): boolean => areAllIn(pid, ["T", "t", "Z", "X", undefined]);

/** The parent's pid, or undefined when the process is gone. */
export function parentOf(pid: number): number | undefined {
  const fields = statOf(pid);
  return fields && Number(fields[1]);
}

/** The monitor of a container's first process, unless it was killed and the process now has another parent. */
export function monitorOf(initPid: number): number[] {
  const parent = parentOf(initPid);
  return parent !== undefined && commandLineOf(parent)[0]?.endsWith("conmon") ? [parent] : [];
}

/** A process's number in its own pid namespace; undefined when it is gone. */
export function innerPidOf(pid: number): number | undefined {
  const numbers = /^NSpid:\s+(.+)$/m.exec(read(`/proc/${pid}/status`) ?? "")?.[1];
  return numbers === undefined ? undefined : Number(numbers.split(/\s+/).at(-1));
}

/** When the process started, in clock ticks since boot; undefined when it is gone. */
export function startTimeOf(pid: number): number | undefined {
  const fields = statOf(pid);
  return fields && Number(fields[19]);
}

/** Process group, and the foreground group of the controlling terminal (-1 without one); undefined when the process is gone. */
export function groupsOf(pid: number): { group: number; foreground: number } | undefined {
  const fields = statOf(pid);
  return fields && { group: Number(fields[2]), foreground: Number(fields[5]) };
}

/** Whether a process has ended; its parent may not have noticed. */
export const isGone = (pid: number): boolean => areAllIn(pid, ["Z", "X", undefined]);

/**
 * Kills a process and all its descendants. The root must be a child subreaper, so that no descendant can leave its tree. It is
 * stopped first: it still inherits orphans, but does not exit with the command.
 */
export async function killTree(root: number): Promise<void> {
  const space = pidNamespaceOf(root);
  signal(root, "SIGSTOP", space);
  for (let round = 0; round < killRoundsMax; round++) {
    const living = stopDescendants(root, space).filter((pid) => !isGone(pid));
    if (living.length === 0) break;
    for (const pid of living) signal(pid, "SIGKILL", space);
    await pause(killPauseMs);
  }
  signal(root, "SIGKILL", space);
}

/** Stops all descendants until no new one appears; a stopped process cannot fork. Returns them, including dead ones. */
function stopDescendants(root: number, space: string | undefined): number[] {
  const seen = new Set<number>();
  for (let round = 0, before = -1; seen.size > before && round < stopRoundsMax; round++) {
    before = seen.size;
    const found = childrenOf(root);
    for (let i = 0; i < found.length; i++) {
      const pid = found[i] as number;
      // At once, not after the whole walk: a process that forks and exits all the time would always be ahead.
      if (!seen.has(pid)) signal(pid, "SIGSTOP", space);
      seen.add(pid);
      found.push(...childrenOf(pid));
    }
  }
  return [...seen];
}

/**
 * Kills all processes of a pid namespace except some. All are stopped before any is killed, so that none can replace
 * another. The search repeats until it finds no process forked meanwhile.
 *
 * @returns the processes that were signalled; they take a moment more to disappear.
 */
export function killAll(space: string, spared: readonly (number | undefined)[]): number[] {
  let members: number[] = [];
  for (let round = 0, before = "none"; round < stopAllRoundsMax && before !== members.join(); round++) {
    before = members.join();
    members = (processesByNamespace().get(space) ?? []).filter((pid) => !spared.includes(pid));
    for (const pid of members) signal(pid, "SIGSTOP", space);
  }
  for (const pid of members) signal(pid, "SIGKILL", space);
  return members;
}

/** The id of this process's user on the host, outside of Podman's user namespace. */
export const hostUserId = (): string => read("/proc/self/uid_map")?.trim().split(/\s+/)[1] ?? "";

/**
 * The identity of a process's pid namespace, or undefined when the process is gone or not visible to us. Into the processes of a
 * copy we cannot look: theirs is the control group of their container, in which only they cannot be looked into.
 */
export const pidNamespaceOf = (pid: number): string | undefined => targetOf(`/proc/${pid}/ns/pid`) ?? containerGroupOf(pid);

function containerGroupOf(pid: number): string | undefined {
  const groups = read(`/proc/${pid}/cgroup`);
  return groups?.includes("/libpod-") ? groups : undefined;
}

export function commandLineOf(pid: number): string[] {
  return (read(`/proc/${pid}/cmdline`) ?? "").split("\0");
}

/** As `NAME=value`; empty for a process that is gone or not visible to us. */
export function environmentOf(pid: number): string[] {
  return (read(`/proc/${pid}/environ`) ?? "").split("\0");
}

export interface ProcessUsage {
  readonly pid: number;
  /** User and system time in clock ticks (1/100 s), including waited-for children. */
  readonly cpuTicks: number;
  /** Anonymous and shared memory in use; memory shared by several processes counts for each of them. */
  readonly memoryBytes: number;
}

/** All processes that this user namespace can see, by pid namespace, from one pass over /proc. */
export function processesByNamespace(): Map<string, number[]> {
  const spaces = new Map<string, number[]>();
  for (const pid of processIds()) {
    const space = pidNamespaceOf(pid);
    if (!space) continue;
    const members = spaces.get(space);
    if (members) members.push(pid);
    else spaces.set(space, [pid]);
  }
  return spaces;
}

/** CPU time and memory of one process, or undefined when it is gone. */
export function usageOf(pid: number): ProcessUsage | undefined {
  const fields = statOf(pid);
  const status = read(`/proc/${pid}/status`);
  if (!fields || !status) return undefined;
  const cpuTicks = [11, 12, 13, 14].reduce((sum, index) => sum + Number(fields[index]), 0);
  return { pid, cpuTicks, memoryBytes: residentBytes(sizesOf(status)) };
}
