/** How a session ends, for its clients and for the log. */
import type { ExecutionStatus } from "../../shared/schemas/executions.ts";
import type { ExitMessage } from "../../shared/schemas/session-messages.ts";
import { signalOfExitCode } from "../../shared/stream/session/protocol.ts";

const timeoutExitCode = 124;

/** As the log has it. */
export interface SessionEnd {
  readonly status: Exclude<ExecutionStatus, "running">;
  readonly exitCode: number;
  readonly error: string | undefined;
}

/** Why it is being ended by us. */
export interface Stop {
  readonly kind: "asked" | "timeout" | "limit";
  readonly reason: string;
}

/** @param exitCode the command's own */
export function endOf(exitCode: number, stop: Stop | undefined): SessionEnd {
  const isLate = stop?.kind === "timeout";
  return { status: isLate ? "timeout" : "completed", exitCode: isLate ? timeoutExitCode : exitCode, error: stop?.reason };
}

/** What its clients are told at last. @param ownExitCode the command's own; undefined `command` for an interactive shell */
export function exitMessage(ownExitCode: number, stop: Stop | undefined, command: string | undefined): ExitMessage {
  const { status, exitCode } = endOf(ownExitCode, stop);
  // The exit code of an interactive shell is that of its last command, so only for a command it tells of a signal.
  const signal = status === "completed" && (command !== undefined || stop) ? signalOfExitCode(exitCode) : undefined;
  // Whoever asked for the end knows why.
  const reason = stop && stop.kind !== "asked" ? { reason: stop.reason } : {};
  return { type: "exit", exit_code: exitCode, ...(signal ? { signal } : {}), ...reason };
}
