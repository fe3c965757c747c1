/** How a session ends, for its clients and for the log. */
import type { ExitMessage } from "../../shared/schemas/sessions.ts";
import { signalOfExitCode } from "../../shared/stream/session/protocol.ts";
import type { End } from "../log/entry.ts";

const timeoutExitCode = 124;

/** Why the worker ends the session. */
export interface Stop {
  readonly kind: "asked" | "timeout" | "limit";
  readonly reason: string;
}

/** The end as logged. @param exitCode the command's own exit code */
export function endOf(exitCode: number, stop: Stop | undefined): End {
  const outcome =
    stop?.kind === "timeout" ? ({ status: "timeout", exit_code: timeoutExitCode } as const) : ({ status: "completed", exit_code: exitCode } as const);
  return { ...outcome, ended_at_ms: Date.now(), ...(stop ? { error: stop.reason } : {}) };
}

/** The end of a session that failed, as logged. */
export const failedEnd = (error: string): End => ({ status: "error", exit_code: -1, error, ended_at_ms: Date.now() });

/** The last message to clients. @param ownExitCode the command's own @param command undefined for an interactive shell */
export function exitMessage(ownExitCode: number, stop: Stop | undefined, command: string | undefined): ExitMessage {
  const { status, exit_code } = endOf(ownExitCode, stop);
  // An interactive shell exits with the code of its last command, so only a command's exit code can stand for a signal.
  const signal = status === "completed" && (command !== undefined || stop) ? signalOfExitCode(exit_code) : undefined;
  // A client that asked for the end knows the reason.
  const reason = stop && stop.kind !== "asked" ? { reason: stop.reason } : {};
  return { type: "exit", exit_code, ...(signal ? { signal } : {}), ...reason };
}
