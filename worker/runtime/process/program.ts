/** Starting programs: everything that the worker starts is started here. Argument lists, never a command line. */
import { closeSync } from "node:fs";
import { HelperProcess, type Launch } from "./helper.ts";
import { lowPriority, oomScoreAdj } from "./priority.ts";

/** Descriptors of ours that a program gets as its standard streams, and which are closed here once it has them; /dev/null where there is none. */
export interface Descriptors {
  readonly stdin?: number;
  readonly stdout?: number;
  readonly stderr?: number;
}

export interface ProgramOptions extends Descriptors {
  readonly cwd?: string;
  /** Whether it gives way to what calls wait for. */
  readonly isBulk?: boolean;
  /** Whether it and what it starts are a process group, which `kill` ends as a whole. */
  readonly hasGroup?: boolean;
  /** For a command of a sandbox, which gives way, is ended first when memory lacks, and runs in a CPU group if there is one. */
  readonly sandbox?: { readonly cpuGroup: string | undefined };
}

/** A program that was started and has yet to end. */
export interface Program extends Launch {
  /** Ends it at once. Without effect on one that has ended. */
  kill(): void;
}

const helper = new HelperProcess();

/** Starts a program. Its environment is that of the worker, without settings and secrets. */
export function startProgram(command: readonly string[], options: ProgramOptions): Program {
  const { stdin, stdout, stderr, cwd = "", isBulk, hasGroup, sandbox } = options;
  const { pid, exited } = helper.launch([
    cwd,
    hasGroup ? "1" : "",
    sandbox || isBulk ? String(lowPriority) : "",
    sandbox ? String(oomScoreAdj) : "",
    sandbox?.cpuGroup ?? "",
    ...[stdin, stdout, stderr].map((fd) => fd?.toString() ?? ""),
    ...command,
  ]);
  void pid.then(() => [stdin, stdout, stderr].forEach((fd) => fd !== undefined && closeSync(fd)));
  let hasEnded = false;
  const end = (): void => {
    hasEnded = true;
  };
  exited.then(end, end);
  const kill = (): void => void pid.then((known) => known !== undefined && !hasEnded && killNow(hasGroup ? -known : known));
  return { pid, exited, kill };
}

/** Kills a process, or the group of a negative number. */
export function killNow(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has gone.
  }
}
