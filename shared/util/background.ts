/**
 * What becomes of failures that nobody waits for. The rule: what a call causes ends that call, and nothing else.
 *
 * - Every way into a process hands what is thrown to whoever asked: the pipeline answers a request, the bus a call, a stream
 *   its other end, a WebSocket its client.
 * - What nobody waits for (timers, listeners, the rest of a call that was answered already) runs by `inBackground`, which
 *   logs its failure.
 * - A rejected promise that was forgotten all the same is a defect, which is logged. It belongs to one piece of work, which
 *   ended with it; the process goes on.
 * - An exception that leaves the event loop has interrupted somebody in the middle, perhaps a library in its own records.
 *   Nobody knows what still holds, so the process ends and is started anew. No call may ever get there.
 */
import type { Logger } from "./log.ts";

/** Runs what nobody waits for. @param failure what the log says where it fails. */
export function inBackground(log: Logger, failure: string, work: () => unknown): void {
  const failed = (err: unknown): void => log.error({ err }, failure);
  try {
    const running = work();
    if (running instanceof Promise) running.catch(failed);
  } catch (error) {
    failed(error);
  }
}

/** Runs it again and again, whatever becomes of each time. */
export function every(intervalMs: number, log: Logger, failure: string, work: () => unknown): NodeJS.Timeout {
  return setInterval(() => inBackground(log, failure, work), intervalMs);
}

/** Applies the rule to what nobody has caught. To be called once in a process, before it opens anything. */
export function watchUncaught(log: Logger, exit: (code: number) => void): void {
  process.on("unhandledRejection", (err) => log.error({ event: "unhandled_rejection", err }, "a failure had nobody to be told to"));
  process.on("uncaughtException", (err) => {
    log.fatal({ event: "uncaught_exception", err }, "the process ends, because something was interrupted by a defect");
    exit(1);
  });
}
