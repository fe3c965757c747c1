/**
 * Stands a container still and sets it going again: by the cgroup freezer where the container has a cgroup v2 of its
 * own, else by SIGSTOP to every process of its pid namespace until none runs. A stopped process cannot fork, so that
 * comes to an end.
 */
import { accessSync, constants, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { SandgateError } from "../../shared/errors.ts";
import type { Container } from "./container.ts";
import { childrenOf, isStopped, parentOf, processesByNamespace, signal, stateOf } from "./proc.ts";

/** A process in an uninterruptible call stops only when that is over. */
const stillMs = 3_000;
const pollMs = 1;

/** What must be known of a container to stop it. */
export type StillContainer = Pick<Container, "id" | "cgroup" | "pidNamespace">;

/** A container that stands still. */
export interface Frozen {
  /** Sets it going again; to be called once. */
  thaw(): void;
}

/** @throws {SandgateError} `conflict` when a process does not stop in time; everything runs again then. */
export async function freeze(container: Container): Promise<Frozen> {
  const group = freezerOf(container);
  return group ? freezeGroup(group) : stopProcesses(container);
}

/** After a crash of the worker: sets a container going that may have been left standing still. */
export function thawAbandoned(container: StillContainer): void {
  const group = freezerOf(container);
  if (group) writeFileSync(join(group, "cgroup.freeze"), "0");
  continueAll(container, membersOf(container));
}

/** The group of all processes of the container, if it may be frozen. Runtimes put some of them into groups below it. */
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

async function stopProcesses(container: Container): Promise<Frozen> {
  // What somebody in the sandbox has stopped stays stopped.
  const before = new Set(membersOf(container).filter(isStopped));
  const thaw = (): void =>
    continueAll(
      container,
      membersOf(container).filter((pid) => !before.has(pid)),
    );
  try {
    await untilStill(() => {
      const running = membersOf(container).filter((pid) => !isStopped(pid));
      for (const pid of running) {
        if (stateOf(pid) === "D") release(container, pid);
        signal(pid, "SIGSTOP", container.pidNamespace);
      }
      return running.length === 0;
    });
    return { thaw };
  } catch (error) {
    thaw();
    throw error;
  }
}

/**
 * A process that has called vfork waits, beyond the reach of signals, until its child starts a program. If we have
 * stopped the child before that, it must go on for a moment.
 */
function release(container: StillContainer, pid: number): void {
  for (const child of childrenOf(pid)) if (isStopped(child)) signal(child, "SIGCONT", container.pidNamespace);
}

async function untilStill(isStill: () => boolean): Promise<void> {
  for (const deadline = performance.now() + stillMs; !isStill(); await sleep(pollMs)) {
    if (performance.now() > deadline) throw new SandgateError("conflict", "a process of the sandbox cannot be stopped now; try again");
  }
}

/** Children before their parents: a shell that goes on while its command still stands would take it for suspended. */
function continueAll(container: StillContainer, pids: readonly number[]): void {
  const parents = new Map(pids.map((pid) => [pid, parentOf(pid)]));
  const depthOf = (pid: number): number => {
    let depth = 0;
    for (let at = parents.get(pid); at !== undefined && depth < pids.length; at = parents.get(at)) depth++;
    return depth;
  };
  const depths = new Map(pids.map((pid) => [pid, depthOf(pid)]));
  for (const pid of pids.toSorted((a, b) => (depths.get(b) ?? 0) - (depths.get(a) ?? 0))) signal(pid, "SIGCONT", container.pidNamespace);
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
