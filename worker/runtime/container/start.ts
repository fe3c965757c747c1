/** Starts of commands by the OCI runtime: what the runtime is told, and when the command runs. */
import { readFileSync, rmSync } from "node:fs";
import { backoffMs, pause } from "../../../shared/waiting.ts";
import { childrenOf, commandLineOf } from "../process/proc.ts";
import type { ProcessSpec } from "./command.ts";
import type { Container } from "./container.ts";
import { execServerPath, initPath, reaperPath } from "./first-process.ts";

/** A command's terminal: one of its sandbox or, for a strong one, of the host, which the runtime then has for its streams. */
export interface CommandTerminal {
  readonly path: string;
  readonly isHosts: boolean;
}

/**
 * Makes the terminal $0 the controlling one and runs "$@" in it. A session leader does so by opening the terminal; runc and newer
 * versions of crun start a command as one. With older ones, setsid does both; if the image lacks that program, the terminal
 * has no job control.
 */
const entering = `read -r pid name state parent group session rest < /proc/$$/stat
exec <> "$0" >&0 2>&0
if [ "$session" != $$ ] && command -v setsid > /dev/null; then exec setsid -c "$@"; fi
exec "$@"`;

/** The command under the subreaper that keeps everything it starts together, in its terminal. */
export function reaped({ isolation, hasExecServer, hasReaper }: Container, args: readonly string[], terminal: CommandTerminal | undefined): string[] {
  // See `keep.c`.
  if (isolation === "strong" && hasExecServer) return [execServerPath, "keep", ...args];
  const command = terminal && hasReaper ? [reaperPath, "-s", "--", ...args] : [initPath, "--", ...args];
  return terminal && !terminal.isHosts ? ["/bin/sh", "-c", entering, terminal.path, ...command] : command;
}

/** Whether a process is the subreaper of a command, and so the root of its tree, or has such processes as its children. */
export const isReaper = (pid: number): boolean => [initPath, reaperPath, execServerPath].includes(commandLineOf(pid)[0] ?? "");

/** The process that runs a command line. */
export function processOf(container: Container, spec: ProcessSpec, args: readonly string[]) {
  const env = new Map((container.process.env ?? []).map((pair) => [pair.slice(0, pair.indexOf("=")), pair.slice(pair.indexOf("=") + 1)]));
  for (const [name, value] of Object.entries(spec.env)) env.set(name, value);
  return {
    ...container.process,
    args,
    env: [...env].map(([name, value]) => `${name}=${value}`),
    cwd: spec.workingDir ?? container.process.cwd,
  };
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
