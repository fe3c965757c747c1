/**
 * The processes of strong sandboxes. They are known only to gVisor's kernel, a process on the host, which starts, lists and
 * signals them when its runtime asks for that. The host sees that kernel, its file server, and processes in which it executes
 * the sandbox's code.
 */
import { readFileSync } from "node:fs";
import { attempt } from "../../../shared/util/attempt.ts";
import { processIds } from "../../../shared/util/proc.ts";
import { until } from "../../../shared/waiting.ts";
import { strongRuntime } from "../host/strong.ts";
import { childrenOf, commandLineOf, monitorOf, pidNamespaceOf, signal } from "../process/proc.ts";
import { run } from "../process/run.ts";

const timeoutMs = 10_000;
/** A tree that is still there after this many rounds, or has more processes, is ended with the whole sandbox. */
const killRoundsMax = 20;
const treeMax = 100;
const signalsAtOnce = 4;
const startPollMs = 10;
/** Of the process that only waits. */
const firstPid = 1;
/** What `keep.c` calls itself, at the end of a line of the list. */
const keeperName = /\s\.sandgate-(\d{1,6})$/;

/** What is needed to find a strong sandbox's processes, and to end its kernel. */
interface StrongContainer {
  readonly id: string;
  readonly initPid: number;
  readonly pidNamespace: string;
}

/** A process by its number in the sandbox. */
interface InnerProcess {
  readonly pid: number;
  readonly parent: number;
  /** The process that the runtime has started for a command, where this one is the command's keeper, as it says of itself. */
  readonly keptFor: number | undefined;
}

/** The processes in the sandbox; none when it is gone. */
export async function innerProcesses({ id }: Pick<StrongContainer, "id">): Promise<InnerProcess[]> {
  const { exitCode, stdout } = await run(strongRuntime, ["ps", "--format", "table", id], { timeoutMs });
  if (exitCode !== 0) return [];
  // UID, PID, PPID; a name at the end of a line may contain anything, also what looks like another process.
  return stdout.split("\n").flatMap((line) => {
    const [, pid, parent] = /^\d+\s+(\d+)\s+(\d+)\s/.exec(line) ?? [];
    const [, keptFor] = keeperName.exec(line) ?? [];
    return pid && parent ? [{ pid: Number(pid), parent: Number(parent), keptFor: keptFor === undefined ? undefined : Number(keptFor) }] : [];
  });
}

/** A command, and all that it has started. */
interface CommandTree {
  /** The process that the runtime has started, which is a subreaper where `keep.c` is not at hand, and the keeper. */
  readonly keepers: readonly number[];
  /** By their distance from the keepers, so that parents come before their children. */
  readonly programs: readonly (readonly number[])[];
}

/** @param root the process that the runtime has started */
async function commandTree(container: Pick<StrongContainer, "id">, root: number): Promise<CommandTree> {
  const processes = await innerProcesses(container);
  const keepers = processes.filter(({ pid, keptFor }) => pid === root || keptFor === root).map(({ pid }) => pid);
  const programs: number[][] = [];
  const found = new Set(keepers);
  for (let level = keepers; level.length > 0; ) {
    level = processes.filter(({ pid, parent }) => level.includes(parent) && !found.has(pid)).map(({ pid }) => pid);
    for (const pid of level) found.add(pid);
    programs.push(level);
  }
  return { keepers, programs };
}

/** Signals processes; without effect on those that are gone. */
async function signalInner({ id }: Pick<StrongContainer, "id">, pids: readonly number[], name: NodeJS.Signals): Promise<void> {
  const left = [...pids];
  const signalNext = async (): Promise<void> => {
    for (let pid = left.shift(); pid !== undefined; pid = left.shift())
      await run(strongRuntime, ["kill", "--pid", String(pid), id, name.slice("SIG".length)], { timeoutMs });
  };
  await Promise.all(Array.from({ length: signalsAtOnce }, signalNext));
}

/**
 * Kills a command's keepers with their descendants. They are stopped first: a keeper still inherits orphans, but does not exit with
 * the command. What cannot be ended so goes with the whole sandbox, which is then started again.
 */
async function killInnerTree(container: StrongContainer, root: number): Promise<void> {
  const stopped = new Set<number>();
  // The dead stay in the list until their keeper, which is stopped, has waited for them.
  const killed = new Set<number>();
  for (let round = 0; round < killRoundsMax && killed.size <= treeMax; round++) {
    const { keepers, programs } = await commandTree(container, root);
    const running = keepers.filter((pid) => !stopped.has(pid));
    const living = programs.map((level) => level.filter((pid) => !killed.has(pid))).filter(({ length }) => length > 0);
    if (running.length + living.length === 0) return signalInner(container, keepers, "SIGKILL");
    await signalInner(container, running, "SIGSTOP");
    for (const pid of running) stopped.add(pid);
    // What a keeper has inherited before it stood is in the next list.
    if (running.length > 0) continue;
    for (const pid of living.flat()) killed.add(pid);
    // A shell whose child was killed would say so.
    if (killed.size <= treeMax) for (const level of living) await signalInner(container, level, "SIGKILL");
  }
  endAll(container);
}

/** Ends the sandbox's kernel, and so everything in it. The sandbox is started again when that is noticed. */
export const endAll = ({ initPid, pidNamespace }: Omit<StrongContainer, "id">): void => signal(initPid, "SIGKILL", pidNamespace);

/** Kills a command that was started. Resolves when all of it is gone. */
export async function killStrong(container: StrongContainer, innerPid: Promise<number | undefined>, exited: Promise<number>): Promise<void> {
  const root = await innerPid;
  if (root !== undefined) await killInnerTree(container, root);
  await exited.catch(() => {});
}

/** Kills all commands. What the runtime has started for them has no parent in the sandbox; neither has the first process. */
export async function killCommands(container: StrongContainer): Promise<number> {
  const processes = await innerProcesses(container);
  const roots = new Set(processes.flatMap(({ pid, parent, keptFor }) => (parent === 0 && pid !== firstPid ? [pid] : keptFor === undefined ? [] : [keptFor])));
  for (const root of roots) await killInnerTree(container, root);
  return roots.size;
}

/** Has the runtime that follows it run in a terminal of the host, its controlling one, which it opens for reading and writing. */
export const inHostTerminal = (path: string): string[] => ["setsid", "sh", "-c", 'exec <> "$0" >&0 2>&0 && exec "$@"', path];

/** A command as the host and as the sandbox know it. */
interface Commanded {
  /** The runtime, which passes signals on to the foreground processes of the command's terminal. */
  readonly runtimePid: number | undefined;
  readonly innerPid: number | undefined;
  readonly hasTerminal: boolean;
}

/** Signals the foreground processes of a command's terminal or, without a terminal, all that it has started. */
export async function signalStrong(container: StrongContainer, { runtimePid, innerPid, hasTerminal }: Commanded, name: NodeJS.Signals): Promise<void> {
  if (runtimePid === undefined || innerPid === undefined) return;
  // These would reach the runtime itself.
  const isPassedOn = hasTerminal && name !== "SIGKILL" && name !== "SIGSTOP";
  if (isPassedOn) attempt(() => process.kill(runtimePid, name));
  // A keeper ends with its command.
  else await signalInner(container, (await commandTree(container, innerPid)).programs.flat(), name);
}

/** Resolves with a command's process in the sandbox once the runtime has written it to a file; undefined when it has ended before. */
export async function untilStarted(file: string, exited: Promise<number>): Promise<number | undefined> {
  let isOver = false;
  const end = (): void => {
    isOver = true;
  };
  exited.then(end, end);
  let pid = 0;
  await until(
    () => {
      pid = Number(attempt(() => readFileSync(file, "utf8")));
      return pid > 0 || isOver;
    },
    { pollMs: startPollMs },
  );
  return pid > 0 ? pid : undefined;
}

/** The kernel of a strong sandbox, by what it was started with; undefined when there is none. */
export const kernelOf = (containerId: string): number | undefined =>
  processIds().find((pid) => {
    const [program, ...args] = commandLineOf(pid);
    return program === "runsc-sandbox" && args.includes(containerId);
  });

/** All host processes of a strong sandbox but its monitor. */
export function strongProcesses(initPid: number): number[] {
  const [monitor] = monitorOf(initPid);
  const found = monitor === undefined ? [initPid] : childrenOf(monitor);
  for (const pid of found) found.push(...childrenOf(pid));
  return found.filter((pid) => pidNamespaceOf(pid) !== undefined);
}
