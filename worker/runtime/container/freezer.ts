/**
 * Stands a container still and sets it going again: by the cgroup freezer where the container has a cgroup v2 of its
 * own, else by SIGSTOP to every process of its pid namespace until none runs. A stopped process cannot fork, so that
 * comes to an end.
 */
import { accessSync, constants, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { SandgateError } from "../../../shared/errors.ts";
import { pause, until } from "../../../shared/waiting.ts";
import { isStopped, parentOf, processesByNamespace, signal } from "../process/proc.ts";
import type { Container } from "./container.ts";

/** A process in an uninterruptible call stops only when that is over. */
const stillMs = 3_000;
const pollMs = 1;
/** How often processes that were told to stop are looked at before all are listed anew. */
const levelPollsMax = 20;

/** What must be known of a container to stop it. */
export type StillContainer = Pick<Container, "id" | "cgroup" | "pidNamespace">;

/** A container that stands still. */
export interface Frozen {
  /** Sets it going again; to be called once. */
  thaw(): void;
}

/**
 * @param isEnding whether a process is one that somebody is ending and keeps stopped, which then must not run again.
 * @throws {SandgateError} `conflict` when a process does not stop in time; everything runs again then.
 */
export async function freeze(container: Container, isEnding: (pid: number) => boolean): Promise<Frozen> {
  const group = freezerOf(container);
  return group ? freezeGroup(group) : stopProcesses(container, isEnding);
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

async function stopProcesses(container: Container, isEnding: (pid: number) => boolean): Promise<Frozen> {
  // What somebody in the sandbox has stopped stays stopped.
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
 * Stops everything once, children only when their parents stand: a shell that still runs when its command has stopped
 * takes it for suspended, and one that has called vfork stops only after its child has started a program.
 *
 * @returns whether nothing ran at all.
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

/** Processes whose parent is not among them, then their children, and so on. */
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
