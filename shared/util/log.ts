/** JSON log lines on standard output. Credentials are removed wherever they appear in a logged object. */
import { type Logger, pino } from "pino";

export type { Logger };

const secretFields = ["api_key", "apiKey", "x-api-key", "key", "password", "token", "authorization", "cookie", "env", "env_vars"];

/**
 * The root logger of a process. `part` is `gateway` or `worker`.
 *
 * It writes by Node's own stream. The one that pino makes by default tries its last lines for ever, and keeps the process
 * from ending, where whoever read them is gone.
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

/** What nobody reads any more is lost; an orderly end is not cut short by it. */
function outliveReaders(): void {
  if (outlives) return;
  outlives = true;
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {});
}
