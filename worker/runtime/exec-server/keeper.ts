/** A command that the exec server of a sandbox has started, as its keeper reports on it. */
import { letWait, openPipe } from "../../../shared/util/libc.ts";
import { sigkillExitCode } from "../container/command.ts";
import { PipeReader, pipeSocket } from "../process/pipes.ts";
import { exitCodeOf } from "../process/program.ts";
import { type Report, reportOf } from "./message.ts";

const lineCharactersMax = 64;

export interface Kept {
  /** The keeper's process id, as the sandbox numbers processes. */
  readonly pid: number;
  /** Resolves when the command runs; rejects when it could not be started. */
  readonly started: Promise<void>;
  /** The exit code; that of SIGKILL when the keeper was killed, too. Rejects like `started`. */
  readonly exited: Promise<number>;
  /** What the keeper of a terminal says next time of holding it still: how much of what was typed was not read; undefined when it says no more. */
  held(): Promise<number | undefined>;
}

/** Why a command could not be started, from what its keeper says. */
export type StartFailure = (report: Extract<Report, { event: "failed" }>) => Error;

/** The pipe on which a keeper reports. */
export class Reports {
  /** For the keeper; to be closed here when it has it. */
  readonly theirFd: number;
  /** The keeper, when it has the command; undefined if none has it and none will. */
  readonly kept: Promise<Kept | undefined>;
  readonly #reader: PipeReader;
  readonly #kept = Promise.withResolvers<Kept | undefined>();
  readonly #started = Promise.withResolvers<void>();
  readonly #exited = Promise.withResolvers<number>();
  readonly #failure: StartFailure;
  #isKept = false;
  #held = Promise.withResolvers<number | undefined>();

  constructor(failure: StartFailure) {
    const { readFd, writeFd } = openPipe();
    letWait(writeFd);
    this.theirFd = writeFd;
    this.#reader = new PipeReader(readFd, (reading) => pipeSocket(readFd, reading));
    this.#failure = failure;
    this.kept = this.#kept.promise;
    for (const { promise } of [this.#started, this.#exited]) promise.catch(() => {}); // Not everybody waits for it.
    void this.#hear();
  }

  close(): void {
    this.#reader.close();
  }

  /** Takes all that was reported together before anybody hears of any of it. Ends with the first line that no keeper writes. */
  async #hear(): Promise<void> {
    let text = "";
    let isOver = false;
    for (let bytes = await this.#reader.next(); bytes && !isOver && text.length <= lineCharactersMax; bytes = isOver ? undefined : await this.#reader.next()) {
      const lines = (text + bytes.toString("latin1")).split("\n");
      text = lines.pop() ?? "";
      isOver = lines.some((line) => this.#isLast(line));
    }
    this.close();
    this.#kept.resolve(undefined);
    this.#held.resolve(undefined);
    this.#exited.resolve(sigkillExitCode);
    this.#started.resolve();
  }

  #isLast(line: string): boolean {
    const report = reportOf(line);
    if (report?.event === "kept" && !this.#isKept) {
      this.#isKept = true;
      this.#kept.resolve({ pid: report.pid, started: this.#started.promise, exited: this.#exited.promise, held: () => this.#held.promise });
      return false;
    }
    if (!report || !this.#isKept) return true;
    if (report.event === "started") this.#started.resolve();
    if (report.event === "held") {
      this.#held.resolve(report.unread);
      this.#held = Promise.withResolvers();
      return false;
    }
    if (report.event === "ended") this.#exited.resolve(exitCodeOf(report.status));
    if (report.event === "failed") this.#fail(this.#failure(report));
    return report.event !== "started";
  }

  #fail(error: Error): void {
    this.#started.reject(error);
    this.#exited.reject(error);
  }
}
