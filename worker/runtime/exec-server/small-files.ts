/** Small files, which the exec server of a sandbox reads and writes itself. Its answers concern its own sandbox only. */
import { closeSync, readSync, writeSync } from "node:fs";
import { stoppedBy, unlessAborted } from "../../../shared/abort.ts";
import { attempt } from "../../../shared/util/attempt.ts";
import { openPipe } from "../../../shared/util/libc.ts";
import { sigkillExitCode } from "../container/command.ts";
import type { Container } from "../container/container.ts";
import { signal as send } from "../process/proc.ts";
import type { Descriptors } from "../process/program.ts";
import type { ExecServers } from "./servers.ts";

/** The largest one, as `files.c` has it: what a pipe holds, so that neither side waits for the other. */
export const smallFileBytesMax = 65_536;
/** How `files.c` ends when it has left the file as it was, to be read or written by a program. */
const leftExitCode = 46;

/** How the work on a file has ended. */
export interface WorkedOn {
  /** As of the programs that do the same. */
  readonly exitCode: number;
  /** What was read. */
  readonly content: Buffer;
}

/** Reads a file. @returns undefined if a program is to do it */
export async function readSmall(servers: ExecServers, container: Container, path: string, gone: AbortSignal): Promise<WorkedOn | undefined> {
  const { readFd, writeFd } = openPipe();
  try {
    const exitCode = await work(servers, container, ["read", path], { stdout: writeFd }, gone).finally(() => closeSync(writeFd));
    return exitCode === undefined ? undefined : { exitCode, content: contentOf(readFd) };
  } finally {
    closeSync(readFd);
  }
}

/** A small file that is to be written. */
export interface SmallFile {
  readonly path: string;
  readonly content: Buffer;
  /** What it is called beside the path until it is whole. */
  readonly temporaryName: string;
  readonly mode: string;
}

/** Puts a file in place of what is there. @returns undefined if a program is to do it */
export async function writeSmall(servers: ExecServers, container: Container, file: SmallFile, gone: AbortSignal): Promise<WorkedOn | undefined> {
  const { path, content, temporaryName, mode } = file;
  const { readFd, writeFd } = openPipe();
  try {
    // Less where this user's pipes take too much memory together.
    const taken = content.length === 0 ? 0 : attempt(() => writeSync(writeFd, content));
    closeSync(writeFd);
    if (taken !== content.length) return undefined;
    const exitCode = await work(servers, container, ["write", path, temporaryName, mode], { stdin: readFd }, gone);
    return exitCode === undefined ? undefined : { exitCode, content: Buffer.alloc(0) };
  } finally {
    closeSync(readFd);
  }
}

/** The exit code; undefined when the server leaves it to a program, or is of a version that cannot do it. */
async function work(servers: ExecServers, container: Container, args: readonly string[], theirs: Descriptors, gone: AbortSignal): Promise<number | undefined> {
  const kept = await servers.work(container, args, theirs);
  if (!kept) return undefined;
  const kill = (): void => {
    const pid = servers.keeperOf(container, kept.pid);
    if (pid !== undefined) send(pid, "SIGKILL", container.pidNamespace);
  };
  // A server that was led astray may name a keeper that is none.
  const exited = stoppedBy(gone, kill, () => unlessAborted(gone, kept.exited));
  const exitCode = await exited.catch(() => (gone.aborted ? sigkillExitCode : leftExitCode));
  return exitCode === leftExitCode ? undefined : exitCode;
}

/** What is in the pipe, and no more than a small file has. */
function contentOf(fd: number): Buffer {
  const content = Buffer.alloc(smallFileBytesMax);
  let length = 0;
  for (let more = 1; more > 0 && length < content.length; length += more)
    more = attempt(() => readSync(fd, content, length, content.length - length, null)) ?? 0;
  return content.subarray(0, length);
}
