/** Starts programs: every program the worker runs is started here, from an argument list, never from a command line. */
import { closeSync } from "node:fs";
import { HelperProcess, type Launch } from "./helper.ts";
import { lowPriority, oomScoreAdj } from "./priority.ts";

/** Our descriptors for a program's standard streams, closed here once the program has them; /dev/null where there is none. */
export interface Descriptors {
  readonly stdin?: number;
  readonly stdout?: number;
  readonly stderr?: number;
}

export interface ProgramOptions extends Descriptors {
  readonly cwd?: string;
  /** Whether it runs with low priority, yielding to calls. */
  readonly isBulk?: boolean;
  /** Whether it and its children form a process group, which `kill` ends as a whole. */
  readonly hasGroup?: boolean;
  /** For a sandbox command: low priority, killed first when memory runs out, in the sandbox's control group if it has one of ours. */
  readonly sandbox?: { readonly group: { readonly entrances: readonly string[] } | undefined };
}

/** A started program. */
export interface Program extends Launch {
  /** Kills it; without effect on a program that has ended. */
  kill(): void;
}

const helper = new HelperProcess();

/** Starts a program. Its environment is the worker's, without settings and secrets. */
export function startProgram(command: readonly string[], options: ProgramOptions): Program {
  const { stdin, stdout, stderr, cwd = "", isBulk, hasGroup, sandbox } = options;
  const { pid, exited } = helper.launch([
    cwd,
    hasGroup ? "1" : "",
    sandbox || isBulk ? String(lowPriority) : "",
    sandbox ? String(oomScoreAdj) : "",
    sandbox?.group?.entrances.join("\n") ?? "",
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

/** Kills a process, or a process group if the number is negative. */
export function killNow(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It is gone.
  }
}
