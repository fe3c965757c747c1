/** Shutdown of a process: runs once, last opened is closed first, every failure is reported. */
import type { Logger } from "./log.ts";

type Closer = () => Promise<void> | void;

export class Lifecycle {
  #closers: { name: string; close: Closer }[] = [];
  #stopping: Promise<void> | undefined;

  readonly #log: Logger;
  constructor(log: Logger) {
    this.#log = log;
  }

  get stopping(): boolean {
    return this.#stopping !== undefined;
  }

  /** Registers what undoes a step of the start. */
  onStop(name: string, close: Closer): void {
    this.#closers.push({ name, close });
  }

  /** Closes everything in reverse order; later calls wait for the first. */
  stop(reason: string): Promise<void> {
    this.#stopping ??= this.#closeAll(reason);
    return this.#stopping;
  }

  async #closeAll(reason: string): Promise<void> {
    this.#log.info({ event: "stopping", reason }, "stopping");
    for (const { name, close } of this.#closers.reverse()) {
      try {
        await close();
      } catch (error) {
        this.#log.error({ err: error, step: name }, "a step of the shutdown failed");
      }
    }
    this.#log.info({ event: "stopped" }, "stopped");
  }
}

/**
 * Stops on SIGTERM and SIGINT and when the supervisor, which holds the other end of standard input, is gone.
 * A process started from a terminal or by systemd has no such pipe: only the signals count there.
 */
export function stopOnRequest(lifecycle: Lifecycle, exit: (code: number) => void): void {
  const stop = (reason: string) => void lifecycle.stop(reason).then(() => exit(0));
  // Not `once`: where the last listener is gone, execa's clean-up takes the signal for itself and ends the process.
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
