/** One command from its request to its end: streams its output, applies limits and cancellation, and has exactly one outcome. */
import type { ExecutionEnd } from "../../shared/bus/contract/commands.ts";
import { SandgateError } from "../../shared/errors.ts";
import type { Stream } from "../../shared/stream/stream.ts";
import type { Logger } from "../../shared/util/log.ts";
import { outOfMemory, type RunningCommand, sigkillExitCode } from "../runtime/container/command.ts";
import { ContainerNotRunning } from "../runtime/container/container.ts";
import { reaperFailure } from "../runtime/container/failures.ts";
import type { PipeReader } from "../runtime/process/pipes.ts";
import type { Activity } from "../sandboxes/registry.ts";
import { OutputStream, pump } from "./output.ts";

/** Exit codes as defined by the API. */
const exitCodes = { timeout: 124, error: -1 } as const;

type Stop = { kind: "timeout" } | { kind: "limit"; reason: string } | { kind: "failed"; error: SandgateError };

interface Parts {
  readonly stream: Stream;
  /** Bytes of each output to pass on; any beyond are counted and dropped. */
  readonly keepBytes: number | undefined;
  readonly log: Logger;
}

/** It can be ended from its first moment, even before its command runs. */
export class Execution implements Activity {
  readonly kind = "execution";
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  readonly startedAtMs = Date.now();
  readonly #parts: Parts;
  #command: RunningCommand | undefined;
  #stop: Stop | undefined;
  #killed: Promise<void> | undefined;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.stdout = new OutputStream("stdout", parts.keepBytes);
    this.stderr = new OutputStream("stderr", parts.keepBytes);
  }

  /** A sandbox that stopped may have done so with a process that the kernel ended for memory. Its next start counts anew. */
  abort(error: SandgateError): void {
    const memory = error instanceof ContainerNotRunning && this.#command && outOfMemory(this.#command, sigkillExitCode).error;
    this.#halt(memory ? { kind: "limit", reason: memory } : { kind: "failed", error });
  }

  killFor(reason: string): void {
    this.#halt({ kind: "limit", reason });
  }

  /** Follows the command, which has started, to its end and returns the outcome; never rejects. */
  async follow(command: RunningCommand, timeoutMs: number): Promise<ExecutionEnd> {
    const { stream, log } = this.#parts;
    this.#command = command;
    if (this.#stop) this.#kill();
    const timer = setTimeout(() => this.#halt({ kind: "timeout" }), timeoutMs);
    const { exited, stdout, stderr } = command;
    try {
      const exitCode = await stream.whileOpen(
        (reason) => this.abort(reason),
        async () => {
          await Promise.all([this.#pump(stdout, this.stdout), this.#pump(stderr, this.stderr), exited]);
          return exited;
        },
      );
      // The command itself may end before the processes it started.
      await this.#killed;
      return this.#outcome(command, exitCode);
    } catch (error) {
      log.error({ err: error }, "a command was lost");
      this.abort(SandgateError.from(error));
      await this.#killed;
      return this.#outcome(command, exitCodes.error);
    } finally {
      clearTimeout(timer);
      command.close();
    }
  }

  #halt(stop: Stop): void {
    if (this.#stop) return;
    this.#stop = stop;
    this.#kill();
  }

  #kill(): void {
    this.#killed = this.#command?.kill().catch((err) => this.#parts.log.error({ err }, "a command could not be killed"));
  }

  async #pump(pipe: PipeReader, output: OutputStream): Promise<void> {
    const { stream } = this.#parts;
    await pump(stream, pipe, output);
    const rest = output.flush();
    if (rest) stream.push(...rest);
  }

  #outcome(command: RunningCommand, exitCode: number): ExecutionEnd {
    const { stdout, stderr } = this;
    const common = {
      stdout_bytes: stdout.bytes,
      stderr_bytes: stderr.bytes,
      stdout_truncated: stdout.truncated,
      stderr_truncated: stderr.truncated,
      started_at_ms: this.startedAtMs,
      ended_at_ms: Date.now(),
    };
    const stop = this.#stop;
    if (stop?.kind === "failed") {
      const { message, code, reason } = stop.error;
      return { ...common, status: "error", exit_code: exitCodes.error, error: message, code, ...(reason ? { reason } : {}) };
    }
    if (stop?.kind === "timeout") return { ...common, status: "timeout", exit_code: exitCodes.timeout };
    if (stop?.kind === "limit") return { ...common, status: "completed", exit_code: sigkillExitCode, error: stop.reason };
    const missing = exitCode === 0 ? undefined : reaperFailure(stderr.preview.text, ["/bin/sh"]);
    if (missing) return { ...common, status: "error", exit_code: exitCodes.error, error: missing.message, code: missing.code };
    return { ...common, status: "completed", exit_code: exitCode, ...outOfMemory(command, exitCode) };
  }
}
