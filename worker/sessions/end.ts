/** How a session ends, for its clients and for the log. */
import type { ExecutionStatus } from "../../shared/schemas/executions.ts";
import type { ExitMessage } from "../../shared/schemas/session-messages.ts";
import { signalOfExitCode } from "../../shared/stream/session/protocol.ts";

const timeoutExitCode = 124;

/** The end as logged. */
export interface SessionEnd {
  readonly status: Exclude<ExecutionStatus, "running">;
  readonly exitCode: number;
  readonly error: string | undefined;
}

/** Why the worker ends the session. */
export interface Stop {
  readonly kind: "asked" | "timeout" | "limit";
  readonly reason: string;
}

/** @param exitCode the command's own exit code */
export function endOf(exitCode: number, stop: Stop | undefined): SessionEnd {
  const isLate = stop?.kind === "timeout";
  return { status: isLate ? "timeout" : "completed", exitCode: isLate ? timeoutExitCode : exitCode, error: stop?.reason };
}

/** The last message to clients. @param ownExitCode the command's own @param command undefined for an interactive shell */
export function exitMessage(ownExitCode: number, stop: Stop | undefined, command: string | undefined): ExitMessage {
  const { status, exitCode } = endOf(ownExitCode, stop);
  // An interactive shell exits with the code of its last command, so only a command's exit code can stand for a signal.
  const signal = status === "completed" && (command !== undefined || stop) ? signalOfExitCode(exitCode) : undefined;
  // A client that asked for the end knows the reason.
  const reason = stop && stop.kind !== "asked" ? { reason: stop.reason } : {};
  return { type: "exit", exit_code: exitCode, ...(signal ? { signal } : {}), ...reason };
}
