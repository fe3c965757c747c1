/**
 * Freezes and thaws a container: with the freezer of its control group if it has one, otherwise by sending SIGSTOP to
 * every process of its pid namespace until none runs. This terminates, because a stopped process cannot fork.
 */
import { SandgateError } from "../../../shared/errors.ts";
import { pause, until } from "../../../shared/waiting.ts";
import { isStopped, parentOf, processesByNamespace, signal } from "../process/proc.ts";
import type { Container } from "./container.ts";
import type { Freezer } from "./groups.ts";

/** The longest wait. A process in an uninterruptible call stops only when the call is over. */
const stillMs = 3_000;
const pollMs = 1;
/** After how many polls a group that does not get frozen is thawed for a moment. */
const stuckPolls = 50;
/** How often processes told to stop are checked before all processes are listed again. */
const levelPollsMax = 20;

/** What is needed to stop a container. */
export type StillContainer = Pick<Container, "group" | "pidNamespace">;

/** A frozen container. */
export interface Frozen {
  /** Thaws it; to be called once. */
  thaw(): void;
}

/**
 * @param isEnding whether a process is being killed and kept stopped for that, so that it must not run again.
 * @throws {SandgateError} `conflict` when a process does not stop in time; everything runs again then.
 */
export async function freeze(container: StillContainer, isEnding: (pid: number) => boolean): Promise<Frozen> {
  const freezer = container.group?.freezer;
  return freezer ? freezeGroup(freezer) : stopProcesses(container, isEnding);
}

/** Thaws a container that a crash of the worker may have left frozen. */
export function thawAbandoned(container: StillContainer): void {
  container.group?.freezer?.thaw();
  continueAll(container, membersOf(container));
}

async function freezeGroup(freezer: Freezer): Promise<Frozen> {
  try {
    freezer.freeze();
    let polls = 0;
    await untilStill(async () => {
      if (freezer.isFrozen()) return true;
      if (++polls % stuckPolls === 0) {
        // A group of cgroup v1 whose processes fork or end meanwhile may stay between the two; another attempt gets it out.
        freezer.thaw();
        await pause(pollMs);
        freezer.freeze();
      }
      return false;
    });
    return { thaw: () => freezer.thaw() };
  } catch (error) {
    freezer.thaw();
    throw error;
  }
}

async function stopProcesses(container: StillContainer, isEnding: (pid: number) => boolean): Promise<Frozen> {
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
async function stopFromTheTop(container: StillContainer): Promise<boolean> {
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
