/** A command that the exec server of a sandbox has started, as its keeper reports on it. */
import { letWait, openPipe } from "../../../shared/util/libc.ts";
import { type ProcessSpec, sigkillExitCode } from "../container/command.ts";
import type { Container } from "../container/container.ts";
import { servedFailure } from "../container/failures.ts";
import { PipeReader } from "../process/pipes.ts";
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
}

/** The pipe on which a keeper reports. */
export class Reports {
  /** For the keeper; to be closed here when it has it. */
  readonly theirFd: number;
  readonly #reader: PipeReader;
  readonly #lines: AsyncGenerator<Report>;

  constructor() {
    const { readFd, writeFd } = openPipe();
    letWait(writeFd);
    this.theirFd = writeFd;
    this.#reader = new PipeReader(readFd);
    this.#lines = reportsIn(this.#reader);
  }

  /** Resolves when a keeper has the command; with undefined if none has it and none will. */
  async kept(spec: ProcessSpec, container: Container): Promise<Kept | undefined> {
    const { value: first } = await this.#lines.next();
    if (first?.event !== "kept") {
      this.close();
      return undefined;
    }
    const started = Promise.withResolvers<void>();
    const exited = this.#follow(spec, container, started.resolve);
    exited.then(() => started.resolve(), started.reject);
    return { pid: first.pid, started: started.promise, exited };
  }

  close(): void {
    this.#reader.close();
  }

  async #follow(spec: ProcessSpec, container: Container, onStart: () => void): Promise<number> {
    try {
      for await (const report of this.#lines) {
        if (report.event === "started") onStart();
        if (report.event === "ended") return exitCodeOf(report.status);
        if (report.event === "failed") throw servedFailure(report, spec, container);
      }
      return sigkillExitCode;
    } finally {
      this.close();
    }
  }
}

/** Ends with the first line that no keeper writes. */
async function* reportsIn(reader: PipeReader): AsyncGenerator<Report, undefined> {
  let text = "";
  for (let bytes = await reader.next(); bytes && text.length <= lineCharactersMax; bytes = await reader.next()) {
    const lines = (text + bytes.toString("latin1")).split("\n");
    text = lines.pop() ?? "";
    for (const line of lines) {
      const report = reportOf(line);
      if (!report) return undefined;
      yield report;
    }
  }
  return undefined;
}
