/**
 * Failures that no caller waits for. The rule: a failure ends the call that caused it, and nothing else.
 *
 * - Every entry point of a process reports what is thrown to its caller: the pipeline answers the request, the bus the call,
 *   a stream its other end, a WebSocket its client.
 * - Work without a caller (timers, listeners, the rest of a call already answered) runs in `inBackground`, which logs its
 *   failure.
 * - A rejected promise that nothing handles is a defect and is logged. It belongs to one piece of work, which has ended; the
 *   process goes on.
 * - An exception that reaches the event loop has interrupted some code halfway, perhaps a library updating its own state. No
 *   invariant can be relied on any more, so the process exits and is restarted. No call must ever be able to cause this.
 */
import type { Logger } from "./log.ts";

/** Runs work that no caller waits for. @param failure the log message if it fails */
export function inBackground(log: Logger, failure: string, work: () => unknown): void {
  const failed = (err: unknown): void => log.error({ err }, failure);
  try {
    const running = work();
    if (running instanceof Promise) running.catch(failed);
  } catch (error) {
    failed(error);
  }
}

/** Runs work at a fixed interval, even after it has failed. */
export function every(intervalMs: number, log: Logger, failure: string, work: () => unknown): NodeJS.Timeout {
  return setInterval(() => inBackground(log, failure, work), intervalMs);
}

/** Applies the rule to uncaught failures. Call it once per process, before anything is opened. */
export function watchUncaught(log: Logger, exit: (code: number) => void): void {
  process.on("unhandledRejection", (err) => log.error({ event: "unhandled_rejection", err }, "a promise rejection was not handled"));
  process.on("uncaughtException", (err) => {
    log.fatal({ event: "uncaught_exception", err }, "the process ends: an uncaught exception has interrupted its work");
    exit(1);
  });
}
