/** JSON log lines on standard output. Credentials are removed wherever they appear in a logged object. */
import { type Logger, pino } from "pino";

export type { Logger };

const secretFields = ["api_key", "apiKey", "x-api-key", "key", "password", "token", "authorization", "cookie", "env", "env_vars"];

/**
 * The root logger of a process. `part` is `gateway` or `worker`.
 *
 * It writes through Node's own stream: the default stream of pino retries its last lines forever when the reader is gone,
 * which keeps the process from ending.
 */
export function createLogger(part: string, level: string): Logger {
  outliveReaders();
  const options = {
    level,
    base: { part },
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    redact: { paths: secretFields.flatMap((field) => [`["${field}"]`, `*["${field}"]`]), censor: "[redacted]" },
  };
  return pino(options, process.stdout);
}

let outlives = false;

/** Drops output that has no reader any more, so that a broken pipe does not interrupt an orderly shutdown. */
function outliveReaders(): void {
  if (outlives) return;
  outlives = true;
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {});
}
