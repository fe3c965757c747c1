/** Shutdown of a process: it runs once, closes in reverse order of opening, and reports every failure. */
import type { Logger } from "./log.ts";

type Closer = () => Promise<void> | void;

export class Shutdown {
  readonly #log: Logger;
  readonly #closers: { name: string; close: Closer }[] = [];
  /** Closers that were registered during the shutdown and are running. */
  readonly #late: Promise<void>[] = [];
  #stopping: Promise<number> | undefined;
  #failed = false;

  constructor(log: Logger) {
    this.#log = log;
  }

  get stopping(): boolean {
    return this.#stopping !== undefined;
  }

  /** Registers a closer that undoes a step of the start. Runs it at once if the shutdown has already begun. */
  onStop(name: string, close: Closer): void {
    if (this.#stopping) this.#late.push(this.#close(name, close));
    else this.#closers.push({ name, close });
  }

  /** Closes everything in reverse order; later calls wait for the first. @returns the exit code: 1 if a step failed */
  stop(reason: string): Promise<number> {
    this.#stopping ??= this.#closeAll(reason);
    return this.#stopping;
  }

  async #closeAll(reason: string): Promise<number> {
    this.#log.info({ event: "stopping", reason }, "stopping");
    for (const { name, close } of this.#closers.reverse()) await this.#close(name, close);
    for (const closing of this.#late) await closing;
    this.#log.info({ event: "stopped" }, "stopped");
    return this.#failed ? 1 : 0;
  }

  async #close(name: string, close: Closer): Promise<void> {
    try {
      await close();
    } catch (error) {
      this.#failed = true;
      this.#log.error({ err: error, step: name }, "a step of the shutdown failed");
    }
  }
}

/**
 * Stops on SIGTERM and SIGINT, and when the supervisor, which holds the other end of standard input, is gone.
 * A process started from a terminal or by systemd has no such pipe and reacts to the signals only.
 */
export function stopOnRequest(shutdown: Shutdown, exit: (code: number) => void): void {
  const stop = (reason: string) => void shutdown.stop(reason).then(exit);
  // Not `once`: when the last listener is removed, execa's clean-up handles the signal and ends the process.
  process.on("SIGTERM", () => stop("SIGTERM"));
  process.on("SIGINT", () => stop("SIGINT"));
  if (!process.stdin.isTTY && isPipe()) {
    process.stdin.on("end", () => stop("the supervisor is gone")).on("error", () => stop("the supervisor is gone"));
    process.stdin.resume();
  }
}

function isPipe(): boolean {
  return !("fd" in process.stdin && process.stdin.constructor.name === "ReadStream");
}
