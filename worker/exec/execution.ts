/** One command from start to end: streams its output, applies limits and cancellation, and has exactly one outcome. */
import type { ExecutionEnd } from "../../shared/bus/contract/commands.ts";
import { SandgateError } from "../../shared/errors.ts";
import type { Stream } from "../../shared/stream/stream.ts";
import type { Logger } from "../../shared/util/log.ts";
import { outOfMemory, type RunningCommand } from "../runtime/container/command.ts";
import { missingProgram } from "../runtime/container/start.ts";
import type { PipeReader } from "../runtime/process/pipes.ts";
import type { Activity } from "../sandboxes/registry.ts";
import type { OutputStream } from "./output.ts";

/** Exit codes as defined by the API. */
const exitCodes = { timeout: 124, error: -1 } as const;
const sigkillExitCode = 137;

type Stop = { kind: "timeout" } | { kind: "limit"; reason: string } | { kind: "failed"; error: SandgateError };

interface Parts {
  readonly command: RunningCommand;
  readonly stream: Stream;
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  readonly startedAtMs: number;
  readonly log: Logger;
}

export class Execution implements Activity {
  readonly kind = "execution";
  readonly #command: RunningCommand;
  readonly #stream: Stream;
  readonly #streams: { readonly stdout: OutputStream; readonly stderr: OutputStream };
  readonly #startedAtMs: number;
  readonly #log: Logger;
  #stop: Stop | undefined;
  #killed: Promise<void> | undefined;

  constructor(parts: Parts) {
    this.#command = parts.command;
    this.#stream = parts.stream;
    this.#streams = { stdout: parts.stdout, stderr: parts.stderr };
    this.#startedAtMs = parts.startedAtMs;
    this.#log = parts.log;
  }

  abort(error: SandgateError): void {
    this.#halt({ kind: "failed", error });
  }

  killFor(reason: string): void {
    this.#halt({ kind: "limit", reason });
  }

  /** Runs to the end and returns the outcome; never rejects. */
  async finish(timeoutMs: number): Promise<ExecutionEnd> {
    const timer = setTimeout(() => this.#halt({ kind: "timeout" }), timeoutMs);
    const { exited, stdout, stderr } = this.#command;
    try {
      const exitCode = await this.#stream.whileOpen(
        (reason) => this.abort(reason),
        async () => {
          await Promise.all([this.#pump(stdout, this.#streams.stdout), this.#pump(stderr, this.#streams.stderr), exited]);
          return exited;
        },
      );
      // The command itself may end before the processes it started.
      await this.#killed;
      return this.#outcome(exitCode);
    } catch (error) {
      this.#log.error({ err: error }, "a command was lost");
      this.#halt({ kind: "failed", error: SandgateError.from(error) });
      await this.#killed;
      return this.#outcome(exitCodes.error);
    } finally {
      clearTimeout(timer);
      stdout.close();
      stderr.close();
    }
  }

  #halt(stop: Stop): void {
    if (this.#stop) return;
    this.#stop = stop;
    this.#killed = this.#command.kill().catch((err) => this.#log.error({ err }, "a command could not be killed"));
  }

  async #pump(pipe: PipeReader, output: OutputStream): Promise<void> {
    await this.#stream.pump(pipe, (chunk) => output.take(chunk));
    const rest = output.flush();
    if (rest) this.#stream.push(rest);
  }

  #outcome(exitCode: number): ExecutionEnd {
    const { stdout, stderr } = this.#streams;
    const common = {
      stdout_bytes: stdout.bytes,
      stderr_bytes: stderr.bytes,
      stdout_truncated: stdout.truncated,
      stderr_truncated: stderr.truncated,
      started_at_ms: this.#startedAtMs,
      ended_at_ms: Date.now(),
    };
    const stop = this.#stop;
    if (stop?.kind === "failed") {
      const { message, code, reason } = stop.error;
      return { ...common, status: "error", exit_code: exitCodes.error, error: message, code, ...(reason ? { reason } : {}) };
    }
    if (stop?.kind === "timeout") return { ...common, status: "timeout", exit_code: exitCodes.timeout };
    if (stop?.kind === "limit") return { ...common, status: "completed", exit_code: sigkillExitCode, error: stop.reason };
    const missing = exitCode === 0 ? undefined : missingProgram(stderr.preview, ["/bin/sh"]);
    if (missing) return { ...common, status: "error", exit_code: exitCodes.error, error: missing.message, code: missing.code };
    return { ...common, status: "completed", exit_code: exitCode, ...outOfMemory(this.#command, exitCode) };
  }
}
