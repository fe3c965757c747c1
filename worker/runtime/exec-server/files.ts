/** Files that the exec server of a sandbox reads, and small ones that it writes, itself. Its answers concern its own sandbox only. */
import { closeSync, writeSync } from "node:fs";
import { stoppedBy, unlessAborted } from "../../../shared/abort.ts";
import { attempt } from "../../../shared/util/attempt.ts";
import { letWait, openPipe } from "../../../shared/util/libc.ts";
import { sigkillExitCode } from "../container/command.ts";
import type { Container } from "../container/container.ts";
import { PipeReader } from "../process/pipes.ts";
import { signal as send } from "../process/proc.ts";
import type { Descriptors } from "../process/program.ts";
import type { Kept } from "./keeper.ts";
import type { ExecServers } from "./servers.ts";

/** The largest small one, as `files.c` has it: what a pipe holds, so that neither side waits for the other. */
export const smallFileBytesMax = 65_536;
/** How `files.c` ends when it has left the file as it was, to be read or written by a program. */
export const leftExitCode = 46;

/** A file that is being sent: a line with its size, then its content. */
export interface SentFile {
  readonly kept: Kept;
  readonly output: PipeReader;
}

/** Has a file sent. @returns undefined if a program is to do it */
export async function sendFile(servers: ExecServers, container: Container, path: string): Promise<SentFile | undefined> {
  const { readFd, writeFd } = openPipe();
  letWait(writeFd);
  const output = new PipeReader(readFd, undefined, container);
  const kept = await servers.work(container, ["send", path], { stdout: writeFd }).finally(() => closeSync(writeFd));
  if (!kept) output.close();
  return kept && { kept, output };
}

/** A small file that is to be written. */
export interface SmallFile {
  readonly path: string;
  readonly content: Buffer;
  /** What it is called beside the path until it is whole. */
  readonly temporaryName: string;
  readonly mode: string;
}

/** Puts a file in place of what is there. @returns the exit code, as of the programs that do the same; undefined if they are to do it */
export async function writeSmall(servers: ExecServers, container: Container, file: SmallFile, gone: AbortSignal): Promise<number | undefined> {
  const { path, content, temporaryName, mode } = file;
  const { readFd, writeFd } = openPipe();
  try {
    // Less where this user's pipes take too much memory together.
    const taken = content.length === 0 ? 0 : attempt(() => writeSync(writeFd, content));
    closeSync(writeFd);
    if (taken !== content.length) return undefined;
    return await work(servers, container, ["write", path, temporaryName, mode], { stdin: readFd }, gone);
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
