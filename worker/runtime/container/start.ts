/** The start of a command by the OCI runtime: what it is told, how one knows that the command runs, why it could not. */
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

/** Whether a process is the subreaper of a command, and so its top. */
export const isReaper = (pid: number): boolean => [initPath, reaperPath].includes(commandLineOf(pid)[0] ?? "");

/** The runtime's process file. @param argv the whole command line. */
export function processOf(container: Container, spec: ProcessSpec, argv: readonly string[]): object {
  const env = new Map((container.process.env ?? []).map((pair) => [pair.slice(0, pair.indexOf("=")), pair.slice(pair.indexOf("=") + 1)]));
  for (const [name, value] of Object.entries(spec.env)) env.set(name, value);
  return {
    ...container.process,
    terminal: false,
    args: argv,
    env: [...env].map(([name, value]) => `${name}=${value}`),
    cwd: spec.workingDir ?? container.process.cwd,
  };
}

/** The first looks come soon after each other: a start takes a few milliseconds. */
const looks = { firstMs: 3, maxMs: 50 };

/**
 * Resolves once the runtime's child has become the subreaper, which means that the working directory,
 * user and limits were accepted. The runtime itself says nothing until the command has ended.
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

/** Removes the files of a start and returns what the runtime complained of. */
export function takeFiles(base: string, exitCode: number): string {
  rmSync(`${base}.json`, { force: true });
  try {
    return exitCode === 0 ? "" : readFileSync(`${base}.log`, "utf8");
  } catch {
    return ""; // The runtime was ended before it made one.
  } finally {
    // The runtime makes it also when it has nothing to say.
    rmSync(`${base}.log`, { force: true });
  }
}

export function startFailure(log: string, spec: ProcessSpec, container: Container): SandgateError {
  const cause = new Error(log.trim());
  // The runtime then misses one thing or another of the container's first process.
  if (pidNamespaceOf(container.initPid) !== container.pidNamespace) return notRunning(log);
  if (/chdir/i.test(log) && spec.workingDir === undefined && /no such file|not a directory/i.test(log)) {
    const message = `the working directory ${container.process.cwd} is not there any more: it was removed in the sandbox; name another as working_dir`;
    return new SandgateError("unprocessable", message, { reason: "no_such_working_dir", cause });
  }
  // At its limit of processes, the runtime's own one may not even enter the folder that it has always entered.
  if (/resource temporarily unavailable/i.test(log) || (/chdir/i.test(log) && spec.workingDir === undefined)) {
    return new SandgateError("unavailable", "the sandboxes of this worker have as many processes as they may have together", { cause });
  }
  if (/chdir|cwd/i.test(log))
    return new SandgateError("unprocessable", `working_dir does not exist or is not a directory: ${spec.workingDir}`, { reason: "no_such_working_dir", cause });
  if (/not running|does not exist|no such process|container.*stopped/i.test(log)) return notRunning(log);
  if (/executable file|no such file or directory/i.test(log))
    return new SandgateError("unprocessable", `the image has no ${spec.args[0]}`, { reason: "no_such_program", cause });
  return new SandgateError("internal_error", "the command could not be started", { cause });
}

/** What the subreaper's words mean when it could not start the command, so that these are all there is: its files were removed. */
export function missingProgram(stderr: string, args: readonly string[]): SandgateError | undefined {
  if (!/^ERROR \(catatonit:\d+\): failed to exec pid1: No such file or directory\n$/.test(stderr)) return undefined;
  const message = `the sandbox has no ${args[0]} that works, which every call needs: were its files removed?`;
  return new SandgateError("unprocessable", message, { reason: "no_such_program", cause: new Error(stderr) });
}
