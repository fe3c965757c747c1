/** Parses the lines that parts print, to show the important ones to the user. */
import { attempt } from "../../shared/util/attempt.ts";

export type Severity = "info" | "warn" | "error";

/** A parsed line. */
export interface LogLine {
  readonly severity: Severity;
  readonly text: string;
  /** The fields of a JSON line; the supervisor reads `event` and the fields that belong to it. */
  readonly fields: Readonly<Record<string, unknown>>;
}

/** Lines of the gateway and the worker: JSON from pino. Anything else (a crash, a warning of Node.js) is shown as it is. */
export function parsePinoLine(line: string): LogLine {
  const fields = attempt(() => asRecord(JSON.parse(line)));
  if (!fields) return { severity: "warn", text: line, fields: {} };
  const error = asRecord(fields.err)?.message;
  const text = [fields.msg, error].filter((part) => typeof part === "string" && part !== "").join(": ");
  return { severity: severityOf(fields.level), text: text || line, fields };
}

/** Lines of nats-server: `[pid] date time [WRN] text`. */
export function parseNatsLine(line: string): LogLine {
  const match = /^\[\d+\] \S+ \S+ \[(\w+)\] (.*)$/.exec(line);
  if (!match) return { severity: "warn", text: line, fields: {} };
  const [, level, text = ""] = match;
  // Any client that connects and leaves causes this, such as the supervisor waiting for the server's greeting. A part with a bad certificate logs that itself.
  if (text.includes("TLS handshake error")) return { severity: "info", text, fields: {} };
  return { severity: level === "ERR" || level === "FTL" ? "error" : level === "WRN" ? "warn" : "info", text, fields: {} };
}

function severityOf(level: unknown): Severity {
  if (level === "error" || level === "fatal" || (typeof level === "number" && level >= 50)) return "error";
  return level === "warn" || level === 40 ? "warn" : "info";
}

function asRecord(value: unknown): Record<string, unknown> | undefined {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined;
}
