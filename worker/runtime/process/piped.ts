/** Host programs whose input or output passes through us piece by piece, at the speed of the slower side. */
import { type ChildProcess, spawn } from "node:child_process";
import type { Readable, Writable } from "node:stream";
import { StallClock } from "../../../shared/waiting.ts";

const stderrCharsMax = 4_096;

export interface PipedOptions {
  /** Which of its ends is ours; the other one is empty. */
  readonly pipe: "stdin" | "stdout";
  /** How long it may neither take nor give anything while we wait for it. */
  readonly stallMs: number;
  /** Ends it. */
  readonly signal: AbortSignal;
}

/** A program and the helpers that it starts: they are one process group and end together. */
export class PipedProgram {
  readonly #child: ChildProcess;
  readonly #closed: Promise<void>;
  readonly #options: PipedOptions;
  readonly #kill = (): void => this.kill();
  #stderr = "";
  #exitCode: number | undefined;

  constructor(argv: readonly string[], options: PipedOptions) {
    options.signal.throwIfAborted();
    const { pipe } = options;
    this.#options = options;
    // Its messages are searched for reasons, so they must be in English.
    this.#child = spawn("env", ["LC_ALL=C", ...argv], {
      stdio: [pipe === "stdin" ? "pipe" : "ignore", pipe === "stdout" ? "pipe" : "ignore", "pipe"],
      detached: true,
    });
    this.#closed = this.#follow();
    options.signal.addEventListener("abort", this.#kill, { once: true });
  }

  /** Its standard output, read no faster than it is asked for. It also ends when the program was killed: `ended` tells. */
  async *output(): AsyncGenerator<Buffer> {
    const chunks = (this.#child.stdout as Readable)[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
    // Reading fails only where the pipe was closed on our side, by `kill`.
    const next = () => this.#inTime(chunks.next()).catch(() => ({ done: true, value: undefined }) as const);
    for (let piece = await next(); !piece.done; piece = await next()) yield piece.value;
  }

  /** Hands it a piece of input. False when it takes no more. */
  async write(chunk: Uint8Array): Promise<boolean> {
    const stdin = this.#child.stdin as Writable;
    if (!stdin.writable) return false;
    if (stdin.write(chunk)) return true;
    const drained = Promise.withResolvers<void>();
    stdin.once("drain", drained.resolve).once("close", drained.resolve);
    await this.#inTime(drained.promise);
    stdin.off("drain", drained.resolve).off("close", drained.resolve);
    return stdin.writable;
  }

  /** Closes its input. Resolves when it and its helpers are gone, undefined after an end without failure, else with what was wrong. */
  async ended(): Promise<string | undefined> {
    this.#child.stdin?.end();
    await this.#inTime(this.#closed);
    return this.#exitCode === 0 ? undefined : this.#stderr || `exit code ${this.#exitCode ?? "unknown"}`;
  }

  /** Ends it at once; has no effect on a program that has ended. */
  kill(): void {
    this.#child.stdin?.destroy();
    this.#child.stdout?.destroy();
    if (this.#exitCode === undefined) this.#killGroup();
  }

  #killGroup(): void {
    const { pid } = this.#child;
    if (pid === undefined) return; // It could not be started.
    try {
      process.kill(-pid, "SIGKILL");
    } catch {
      // All are gone.
    }
  }

  async #follow(): Promise<void> {
    const child = this.#child;
    const closed = Promise.withResolvers<void>();
    child.stdin?.on("error", () => {});
    child.stdout?.on("error", () => {});
    child.stderr?.setEncoding("utf8").on("data", (text: string) => this.#note(text));
    child.on("error", (error) => {
      this.#note(error.message);
      this.#exitCode ??= -1;
      closed.resolve();
    });
    child.on("exit", (code, signal) => {
      if (code === null) this.#note(`ended by ${signal}`);
      this.#exitCode = code ?? -1;
      // Helpers that outlive it would keep the pipes open.
      this.#killGroup();
    });
    child.on("close", () => closed.resolve());
    await closed.promise;
    this.#options.signal.removeEventListener("abort", this.#kill);
  }

  #note(text: string): void {
    this.#stderr = (this.#stderr + text).slice(-stderrCharsMax);
  }

  /** Kills the program when it makes us wait for too long; then what we wait for ends by itself. */
  #inTime<T>(wait: Promise<T>): Promise<T> {
    const { stallMs } = this.#options;
    const stall = new StallClock(stallMs, () => {
      this.#note(`no progress for ${stallMs} ms`);
      this.kill();
    });
    return stall.during(wait);
  }
}
