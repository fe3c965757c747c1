/** Starting host programs: argv arrays, one deadline, one kill path. Nothing outside this folder does it. */
import { type ChildProcess, fork } from "node:child_process";
import { programFile } from "../../../shared/programs.mjs";
import { withLowPriority } from "../container/isolation.ts";
import type { LaunchReply, LaunchRequest } from "./launcher.ts";
import { type RunResult, type RunSettings, runProgram } from "./run-program.ts";

export type { RunResult } from "./run-program.ts";

export interface RunOptions extends RunSettings {
  /** Kills the program. */
  readonly signal?: AbortSignal;
}

/** Runs a program to its end. A failure is a result, not an exception. */
export function run(file: string, args: readonly string[], { signal, ...settings }: RunOptions): Promise<RunResult> {
  return signal ? runProgram(file, args, settings, signal) : launcher.run(file, args, settings);
}

/** The same for a program that goes through many or large files: it gives way to those that calls wait for. */
export function runBulk(file: string, args: readonly string[], options: RunOptions): Promise<RunResult> {
  const [nice, ...rest] = withLowPriority;
  return run(nice, [...rest, file, ...args], options);
}

/** Whether a program has failed for want of disk space, by what it printed. */
export const isOutOfDisk = (stderr: string): boolean => /no space left on device|disk quota exceeded/i.test(stderr);

const program = programFile("worker/runtime/process/launcher.ts");

/** The process that starts programs; made when it is needed first, and anew when it has ended. */
class Launcher {
  #child: ChildProcess | undefined;
  #serial = 0;
  readonly #pending = new Map<number, (result: RunResult) => void>();

  run(file: string, args: readonly string[], settings: RunSettings): Promise<RunResult> {
    this.#child ??= this.#start();
    const child = this.#child;
    const request: LaunchRequest = { id: this.#serial++, file, args, settings };
    return new Promise((resolve) => {
      // A program that is waited for keeps this process going, the launcher alone does not.
      if (this.#pending.size === 0) hold(child);
      this.#pending.set(request.id, resolve);
      child.send(request, () => {}); // A launcher that cannot be reached ends, see below.
    });
  }

  #start(): ChildProcess {
    // Node itself reads these few files: without a loader the process is small and quick to start.
    const child = fork(program, [], { execArgv: [], serialization: "advanced", stdio: ["ignore", "ignore", "inherit", "ipc"] });
    child.on("message", ({ id, result }: LaunchReply) => this.#settle(id, result));
    child.once("error", (error) => this.#ended(child, error.message));
    child.once("exit", (code, signal) => this.#ended(child, `it ended with ${signal ?? code}`));
    return child;
  }

  #settle(id: number, result: RunResult): void {
    this.#pending.get(id)?.(result);
    this.#pending.delete(id);
    if (this.#pending.size === 0 && this.#child) release(this.#child);
  }

  #ended(child: ChildProcess, how: string): void {
    if (this.#child !== child) return;
    this.#child = undefined;
    const result: RunResult = { exitCode: -1, stdout: "", stderr: `the process that starts programs was lost: ${how}`, timedOut: false };
    for (const id of [...this.#pending.keys()]) this.#settle(id, result);
  }
}

function hold(child: ChildProcess): void {
  child.ref();
  child.channel?.ref();
}

function release(child: ChildProcess): void {
  child.unref();
  child.channel?.unref();
}

const launcher = new Launcher();
