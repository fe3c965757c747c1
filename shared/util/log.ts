/** JSON log lines on standard output. Credentials are removed wherever they appear in a logged object. */
import { type Logger, pino } from "pino";
import { currentTrace } from "./trace-context.ts";

export type { Logger };

const secretFields = ["api_key", "apiKey", "x-api-key", "key", "password", "token", "authorization", "cookie", "env", "env_vars"];

/**
 * The root logger of a process. `part` is `gateway` or `worker`. Each line that is written for a call has the ids of the call.
 *
 * It writes through Node's own stream: the default stream of pino retries its last lines forever when the reader is gone,
 * which keeps the process from ending.
 */
export function createLogger(part: string, level: string): Logger {
  outliveReaders();
  const options = {
    level,
    base: { part },
    mixin: callIds,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    redact: { paths: secretFields.flatMap((field) => [`["${field}"]`, `*["${field}"]`]), censor: "[redacted]" },
  };
  return pino(options, process.stdout);
}

/** A new object each time: pino adds the fields of the line to it. */
function callIds(): object {
  const trace = currentTrace();
  return trace ? { ...(trace.requestId === undefined ? {} : { request_id: trace.requestId }), trace_id: trace.ids.traceId } : {};
}

let outlives = false;

/** Drops output that has no reader any more, so that a broken pipe does not interrupt an orderly shutdown. */
function outliveReaders(): void {
  if (outlives) return;
  outlives = true;
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {});
}
