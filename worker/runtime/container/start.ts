/** Starts a command by the OCI runtime: what the runtime is told, when the command runs, and why it could not be started. */
import { readFileSync, rmSync } from "node:fs";
import { SandgateError } from "../../../shared/errors.ts";
import { backoffMs, pause } from "../../../shared/waiting.ts";
import { childrenOf, commandLineOf, pidNamespaceOf } from "../process/proc.ts";
import type { ProcessSpec } from "./command.ts";
import { type Container, notRunning } from "./container.ts";
import { initPath, reaperPath } from "./first-process.ts";

/** The command under the subreaper that keeps everything it starts together. */
export const reaped = (args: readonly string[]): string[] => [initPath, "--", ...args];

/** The same for a command in a terminal. */
export const reapedInTerminal = ({ hasReaper }: Container, args: readonly string[]): string[] => (hasReaper ? [reaperPath, "-s", "--", ...args] : reaped(args));

/** Whether a process is the subreaper of a command, and so the root of its tree. */
export const isReaper = (pid: number): boolean => [initPath, reaperPath].includes(commandLineOf(pid)[0] ?? "");

/** The runtime's process file. */
export function processOf(container: Container, spec: ProcessSpec, { argv, hostTerminal }: CommandLine): object {
  const env = new Map((container.process.env ?? []).map((pair) => [pair.slice(0, pair.indexOf("=")), pair.slice(pair.indexOf("=") + 1)]));
  for (const [name, value] of Object.entries(spec.env)) env.set(name, value);
  return {
    ...container.process,
    terminal: hostTerminal !== undefined,
    args: argv,
    env: [...env].map(([name, value]) => `${name}=${value}`),
    cwd: spec.workingDir ?? container.process.cwd,
  };
}

/** A whole command line, and the terminal of the host that the runtime has for its streams, if it is to have one. */
export interface CommandLine {
  readonly argv: readonly string[];
  readonly hostTerminal?: string | undefined;
}

/** The first checks follow quickly, since a start takes a few milliseconds. */
const looks = { firstMs: 3, maxMs: 50 };

/**
 * Resolves once the runtime's child has become the subreaper, which means that the working directory, user and limits were
 * accepted. The runtime itself reports nothing until the command has ended.
 */
export async function watchStart(runtimePid: number | undefined, exited: Promise<number>): Promise<void> {
  let over = runtimePid === undefined;
  const end = (): void => {
    over = true;
  };
  exited.then(end, end);
  for (let look = 0; runtimePid !== undefined && !over; look++) {
    await pause(backoffMs(look, looks));
    if (childrenOf(runtimePid).some(isReaper)) return;
  }
}

/** Removes the files of a start and returns the runtime's error messages. */
export function takeFiles(base: string, exitCode: number): string {
  for (const kind of ["json", "pid"]) rmSync(`${base}.${kind}`, { force: true });
  try {
    return exitCode === 0 ? "" : readFileSync(`${base}.log`, "utf8");
  } catch {
    return ""; // The runtime was ended before it made one.
  } finally {
    // The runtime creates it even when it has nothing to report.
    rmSync(`${base}.log`, { force: true });
  }
}

const aboutDirectory = /chdir|cwd|working directory/i;

export function startFailure(log: string, spec: ProcessSpec, container: Container): SandgateError {
  const cause = new Error(log.trim());
  // Without the container's first process, the runtime complains about one missing thing or another.
  if (pidNamespaceOf(container.initPid) !== container.pidNamespace) return notRunning(log);
  if (aboutDirectory.test(log) && spec.workingDir === undefined && /no such file|not a directory/i.test(log)) {
    const message = `the working directory ${container.process.cwd} is not there any more: it was removed in the sandbox; name another as working_dir`;
    return new SandgateError("unprocessable", message, { reason: "no_such_working_dir", cause });
  }
  // At the process limit, the runtime may even fail to enter its usual working directory, or lose its process in the container.
  if (/resource temporarily unavailable|fail startup|sync socket/i.test(log) || (/chdir/i.test(log) && spec.workingDir === undefined)) {
    return new SandgateError("unavailable", "the sandbox, or all sandboxes of its worker together, have as many processes as they may have", { cause });
  }
  if (aboutDirectory.test(log))
    return new SandgateError("unprocessable", `working_dir does not exist or is not a directory: ${spec.workingDir}`, { reason: "no_such_working_dir", cause });
  if (/not running|does not exist|no such process|container.*stopped/i.test(log)) return notRunning(log);
  if (/executable file|no such file or directory/i.test(log))
    return new SandgateError("unprocessable", `the image has no ${spec.args[0]}`, { reason: "no_such_program", cause });
  return new SandgateError("internal_error", "the command could not be started", { cause });
}

/** The error when the subreaper's own message is all the output, because it could not start the command: its files were removed. */
export function missingProgram(stderr: string, args: readonly string[]): SandgateError | undefined {
  if (!/^ERROR \(catatonit:\d+\): failed to exec pid1: No such file or directory\n$/.test(stderr)) return undefined;
  const message = `the sandbox has no ${args[0]} that works, which every call needs: were its files removed?`;
  return new SandgateError("unprocessable", message, { reason: "no_such_program", cause: new Error(stderr) });
}
