/**
 * Freezes and thaws a container: with the cgroup freezer if the container has its own cgroup v2, otherwise by sending SIGSTOP to
 * every process of its pid namespace until none runs. This terminates, because a stopped process cannot fork.
 */
import { accessSync, constants, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { SandgateError } from "../../../shared/errors.ts";
import { pause, until } from "../../../shared/waiting.ts";
import { isStopped, parentOf, processesByNamespace, signal } from "../process/proc.ts";
import type { Container } from "./container.ts";

/** The longest wait. A process in an uninterruptible call stops only when the call is over. */
const stillMs = 3_000;
const pollMs = 1;
/** How often processes told to stop are checked before all processes are listed again. */
const levelPollsMax = 20;

/** What is needed to stop a container. */
export type StillContainer = Pick<Container, "id" | "cgroup" | "pidNamespace">;

/** A frozen container. */
export interface Frozen {
  /** Thaws it; to be called once. */
  thaw(): void;
}

/**
 * @param isEnding whether a process is being killed and kept stopped for that, so that it must not run again.
 * @throws {SandgateError} `conflict` when a process does not stop in time; everything runs again then.
 */
export async function freeze(container: Container, isEnding: (pid: number) => boolean): Promise<Frozen> {
  const group = freezerOf(container);
  return group ? freezeGroup(group) : stopProcesses(container, isEnding);
}

/** Thaws a container that a crash of the worker may have left frozen. */
export function thawAbandoned(container: StillContainer): void {
  const group = freezerOf(container);
  if (group) writeFileSync(join(group, "cgroup.freeze"), "0");
  continueAll(container, membersOf(container));
}

/** The cgroup of all processes of the container, if it can be frozen. Runtimes put some of them into groups below it. */
function freezerOf({ cgroup, id }: StillContainer): string | undefined {
  let group = cgroup;
  while (group && !group.endsWith("/sys/fs/cgroup")) {
    const isOwn = group.slice(group.lastIndexOf("/")).includes(id);
    if (isOwn) return isWritable(join(group, "cgroup.freeze")) ? group : undefined;
    group = dirname(group);
    if (group === "/" || group === ".") break;
  }
  return undefined;
}

async function freezeGroup(group: string): Promise<Frozen> {
  const thaw = (): void => writeFileSync(join(group, "cgroup.freeze"), "0");
  try {
    writeFileSync(join(group, "cgroup.freeze"), "1");
    await untilStill(() => /^frozen 1$/m.test(readFileSync(join(group, "cgroup.events"), "utf8")));
    return { thaw };
  } catch (error) {
    thaw();
    throw error;
  }
}

async function stopProcesses(container: Container, isEnding: (pid: number) => boolean): Promise<Frozen> {
  // Processes that the sandbox itself has stopped stay stopped.
  const before = new Set(membersOf(container).filter(isStopped));
  const thaw = (): void =>
    continueAll(
      container,
      membersOf(container).filter((pid) => !before.has(pid) && !isEnding(pid)),
    );
  try {
    await untilStill(() => stopFromTheTop(container));
    return { thaw };
  } catch (error) {
    thaw();
    throw error;
  }
}

/**
 * Stops everything once, children only after their parents: a shell still running when its command stops takes the command for
 * suspended, and a process that called vfork stops only after its child has started a program.
 *
 * @returns whether nothing was running.
 */
async function stopFromTheTop(container: Container): Promise<boolean> {
  const pids = membersOf(container);
  if (pids.every(isStopped)) return true;
  for (const level of byDepth(pids)) {
    for (const pid of level) if (!isStopped(pid)) signal(pid, "SIGSTOP", container.pidNamespace);
    for (let polls = 0; !level.every(isStopped); polls++) {
      if (polls === levelPollsMax) return false;
      await pause(pollMs);
    }
  }
  return false; // Others may have been started before their parents stood.
}

async function untilStill(isStill: () => boolean | Promise<boolean>): Promise<void> {
  if (await until(isStill, { timeoutMs: stillMs, pollMs })) return;
  throw new SandgateError("conflict", "a process of the sandbox cannot be stopped now; try again");
}

/** Children before their parents, for the same reason. */
function continueAll(container: StillContainer, pids: readonly number[]): void {
  for (const pid of byDepth(pids).toReversed().flat()) signal(pid, "SIGCONT", container.pidNamespace);
}

/** Levels of processes: first those whose parent is not in the list, then their children, and so on. */
function byDepth(pids: readonly number[]): number[][] {
  const levels: number[][] = [];
  const parents = new Map(pids.map((pid) => [pid, parentOf(pid)]));
  for (const pid of pids) {
    let depth = 0;
    for (let at = parents.get(pid); at !== undefined && parents.has(at) && depth < pids.length; at = parents.get(at)) depth++;
    const level = levels[depth];
    if (level) level.push(pid);
    else levels[depth] = [pid];
  }
  return levels.filter(Boolean);
}

const membersOf = ({ pidNamespace }: StillContainer): number[] => processesByNamespace().get(pidNamespace) ?? [];

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
