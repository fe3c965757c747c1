/** Commands in containers, as seen by their callers. */
import type { Writable } from "node:stream";
import type { OutputChannel } from "../../../shared/stream/session/protocol.ts";
import type { InputWriter } from "../process/input.ts";
import type { PipeReader } from "../process/pipes.ts";

/** Of a terminal. */
export interface Size {
  readonly cols: number;
  readonly rows: number;
}

/** What to run, and where. */
export interface ProcessSpec {
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly workingDir?: string | undefined;
}

export interface CommandSpec extends ProcessSpec {
  readonly stdin: "none" | "pipe";
}

export interface InteractiveSpec extends ProcessSpec {
  /** The terminal's size; undefined for pipes. */
  readonly terminal: Size | undefined;
}

/** A command that was started in a container. */
export interface Started {
  /** Resolves when the command runs; rejects when it could not be started. */
  readonly started: Promise<void>;
  /** The exit code: the command's own, or 128+n when signal n ended it. Rejects like `started`. */
  readonly exited: Promise<number>;
  /** Whether the kernel has killed a process of the sandbox since the start because it was out of memory. */
  ranOutOfMemory(): boolean;
  /** Kills the command with everything it started, daemonized or not. Resolves when all are gone. */
  kill(): Promise<void>;
  /** Closes our ends of its streams; unread output is lost. */
  close(): void;
}

/** As shells report a command that SIGKILL ended. */
export const sigkillExitCode = 137;

/** Why a command failed while the kernel killed processes of its sandbox: another one, or its own. */
export function outOfMemory(command: Started, exitCode: number): { error?: string } {
  if (exitCode === 0 || !command.ranOutOfMemory()) return {};
  return { error: "out of memory: the sandbox reached its memory limit, and the kernel ended a process" };
}

export interface RunningCommand extends Started {
  readonly stdout: PipeReader;
  readonly stderr: PipeReader;
  readonly stdin: Writable | null;
}

/** One that only sends a file. */
export type FileCommand = Omit<RunningCommand, "stderr" | "stdin">;

/** The output of one channel. */
export interface Output {
  readonly channel: OutputChannel;
  readonly reader: PipeReader;
}

/** A terminal with which a command goes on in copies of its sandbox. */
export interface InsideTerminal {
  /** The process id, in the sandbox, of the keeper that has it. */
  readonly keeper: number;
  /** Holds it still. Resolves to the number of bytes that were typed and not read; undefined when its keeper does not answer. */
  hold(): Promise<number | undefined>;
  goOn(): void;
}

export interface Interactive extends Started {
  readonly outputs: readonly Output[];
  readonly input: InputWriter;
  /** Its terminal, if that is in the sandbox with both of its sides; undefined otherwise. */
  readonly inside?: InsideTerminal;
  /** Without effect on a command without a terminal. */
  resize(size: Size): void;
  /** Signals the foreground processes of the terminal, or those of the command. */
  signal(name: NodeJS.Signals): Promise<void>;
}
