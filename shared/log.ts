/** JSON log lines on standard output. Credentials are removed wherever they appear in a logged object. */
import { type Logger, pino } from "pino";

export type { Logger };

const secretFields = ["api_key", "apiKey", "x-api-key", "key", "password", "token", "authorization", "cookie", "env", "env_vars"];

/** The root logger of a process. `part` is `gateway` or `worker`. */
export function createLogger(part: string, level: string): Logger {
  return pino({
    level,
    base: { part },
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
    redact: { paths: secretFields.flatMap((field) => [`["${field}"]`, `*["${field}"]`]), censor: "[redacted]" },
  });
}
