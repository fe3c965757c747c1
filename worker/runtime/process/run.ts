/** Runs programs of the host to their end, with their whole output and one deadline. */
import { Deadline, onAbort } from "../../../shared/abort.ts";
import { SandgateError } from "../../../shared/errors.ts";
import { openStreams, type PipeReader, writerOf } from "./pipes.ts";
import { type Program, startProgram } from "./program.ts";

const outputBytesMax = 64 * 1024 * 1024;

/** How a host program ended. */
export interface RunResult {
  /** 128+n when signal n ended it, -1 when it could not be started. */
  readonly exitCode: number;
  /** Without the last line break, like stderr. */
  readonly stdout: string;
  readonly stderr: string;
  readonly timedOut: boolean;
}

export interface RunOptions {
  readonly timeoutMs: number;
  readonly input?: string;
  readonly cwd?: string;
  /** Kills the program. */
  readonly signal?: AbortSignal;
}

/**
 * Runs a program to its end. A failure is a result, not an exception. The program outlives the worker, because one killed halfway
 * would leave untracked remains; a restarted worker waits for it instead.
 */
export const run = (file: string, args: readonly string[], options: RunOptions): Promise<RunResult> => runToEnd([file, ...args], options, false);

/** Like `run`, with low priority, for programs that process many or large files. */
export const runBulk = (file: string, args: readonly string[], options: RunOptions): Promise<RunResult> => runToEnd([file, ...args], options, true);

/** The caller's error for a program that failed. What the machine had no time for now, it may have time for later. */
export function programFailure(what: string, { stderr, timedOut }: Pick<RunResult, "stderr" | "timedOut">): SandgateError {
  const cause = new Error(stderr);
  return timedOut ? new SandgateError("unavailable", `${what} in time; try again later`, { cause }) : new SandgateError("internal_error", what, { cause });
}

/** Whether a program's messages say that it failed because the disk is full; tar may only say how much of a file it could write. */
export const isOutOfDisk = (stderr: string): boolean => /no space left on device|disk quota exceeded|wrote only \d+ of/i.test(stderr);

async function runToEnd(command: readonly string[], { timeoutMs, input, cwd = "", signal }: RunOptions, isBulk: boolean): Promise<RunResult> {
  const { stdout, stderr, stdinFd, theirs } = openStreams({ hasInput: input !== undefined });
  const program = startProgram(command, { ...theirs, cwd, isBulk });
  // The program need not read its input.
  if (stdinFd !== undefined)
    writerOf(stdinFd)
      .on("error", () => {})
      .end(input ?? "");
  const deadline = new Deadline(signal, timeoutMs);
  const ignore = onAbort(deadline.signal, program.kill);
  const ended = endOf(program);
  void ended.then(() => [stdout, stderr].forEach((reader) => reader.writerExited()));
  const [exit, out, errors] = await Promise.all([ended, textOf(stdout, program), textOf(stderr, program)]);
  deadline.release();
  ignore();
  const { exitCode, reason } = out.isWhole && errors.isWhole ? exit : { exitCode: -1, reason: `more output than ${outputBytesMax} bytes` };
  return { exitCode, stdout: out.text, stderr: errors.text || reason, timedOut: deadline.isOver };
}

async function endOf({ exited }: Program): Promise<{ exitCode: number; reason: string }> {
  try {
    return { exitCode: await exited, reason: "" };
  } catch (error) {
    const { message, cause } = SandgateError.from(error);
    return { exitCode: -1, reason: `${message}: ${cause instanceof Error ? cause.message : ""}` };
  }
}

/** A program's output, up to a limit at which the program is killed. */
async function textOf(reader: PipeReader, program: Program): Promise<{ text: string; isWhole: boolean }> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for (let chunk = await reader.nextBatch(); chunk; chunk = await reader.nextBatch()) {
    if (bytes <= outputBytesMax) chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > outputBytesMax) program.kill();
  }
  reader.close();
  return { text: Buffer.concat(chunks).toString("utf8").replace(/\n$/, ""), isWhole: bytes <= outputBytesMax };
}
