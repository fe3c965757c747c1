/** Host programs whose input or output streams through the worker at the speed of the slower side, with low priority. */
import type { Socket } from "node:net";
import { onAbort } from "../../../shared/abort.ts";
import { SandgateError } from "../../../shared/errors.ts";
import { StallClock } from "../../../shared/waiting.ts";
import { drained, openStreams, type PipeReader, writerOf } from "./pipes.ts";
import { killNow, type Program, startProgram } from "./program.ts";

const stderrCharsMax = 4_096;

export interface PipedOptions {
  /** Which of its streams is piped; the other one is empty. */
  readonly pipe: "stdin" | "stdout";
  /** The longest that it may neither take nor give anything while we wait for it. */
  readonly stallMs: number;
  /** Kills it. */
  readonly signal: AbortSignal;
}

/** A program and the helpers that it starts: they form one process group and end together. */
export class PipedProgram {
  readonly #program: Program;
  readonly #stdin: Socket | undefined;
  readonly #stdout: PipeReader;
  readonly #closed: Promise<void>;
  readonly #options: PipedOptions;
  #stderr = "";
  #exitCode: number | undefined;

  constructor(argv: readonly string[], options: PipedOptions) {
    options.signal.throwIfAborted();
    this.#options = options;
    const { stdout, stderr, stdinFd, theirs } = openStreams({ hasInput: options.pipe === "stdin" });
    this.#stdin = stdinFd === undefined ? undefined : writerOf(stdinFd).on("error", () => {});
    this.#stdout = stdout;
    // Its messages are searched for reasons, so they must be in English.
    this.#program = startProgram(["env", "LC_ALL=C", ...argv], { ...theirs, hasGroup: true, isBulk: true });
    const ignore = onAbort(options.signal, () => this.kill());
    this.#closed = this.#follow(stderr).finally(ignore);
  }

  /** Its standard output, read only on demand. It also ends when the program was killed; `ended` tells. */
  async *output(): AsyncGenerator<Buffer> {
    for (;;) {
      const piece = await this.#inTime(this.#stdout.next());
      if (!piece) return;
      yield piece;
    }
  }

  /** Passes it a piece of input. Resolves to false when it takes no more. */
  async write(chunk: Uint8Array): Promise<boolean> {
    const stdin = this.#stdin;
    if (!stdin?.writable) return false;
    if (stdin.write(chunk)) return true;
    await this.#inTime(drained(stdin));
    return stdin.writable;
  }

  /** Closes its input. Resolves when it and its helpers are gone: with undefined on success, otherwise with what went wrong. */
  async ended(): Promise<string | undefined> {
    this.#stdin?.end();
    await this.#inTime(this.#closed);
    return this.#exitCode === 0 ? undefined : this.#stderr || `exit code ${this.#exitCode ?? "unknown"}`;
  }

  /** Kills it; without effect on a program that has ended. */
  kill(): void {
    this.#stdin?.destroy();
    this.#stdout.close();
    this.#program.kill();
  }

  async #follow(stderr: PipeReader): Promise<void> {
    const noted = this.#noteAll(stderr);
    try {
      this.#exitCode = await this.#program.exited;
      if (this.#exitCode > 128) this.#note(`ended by signal ${this.#exitCode - 128}`);
    } catch (error) {
      this.#note(String(SandgateError.from(error).cause));
      this.#exitCode = -1;
    }
    // Helpers that outlive it would keep the pipes open.
    const pid = await this.#program.pid;
    if (pid !== undefined) killNow(-pid);
    await noted;
  }

  async #noteAll(stderr: PipeReader): Promise<void> {
    for (let text = await stderr.next(); text; text = await stderr.next()) this.#note(text.toString("utf8"));
    stderr.close();
  }

  #note(text: string): void {
    this.#stderr = (this.#stderr + text).slice(-stderrCharsMax);
  }

  /** Kills the program when it stalls for too long; whatever waits for it then ends by itself. */
  #inTime<T>(wait: Promise<T>): Promise<T> {
    const { stallMs } = this.#options;
    const stall = new StallClock(stallMs, () => {
      this.#note(`no progress for ${stallMs} ms`);
      this.kill();
    });
    return stall.during(wait);
  }
}
