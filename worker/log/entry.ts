/** Entries of the execution log, with callers' texts cut to a maximum length and the sizes of an entry. */

import type { LogEntry } from "../../shared/bus/contract/commands.ts";
import type { Request } from "../../shared/bus/contract/contract.ts";
import type { Preview } from "../exec/output.ts";

/** Who asked, for what. */
type Caller = Pick<Request<"execute" | "sessionStart">, "request_id" | "account_id" | "sandbox_id" | "working_dir">;

/** What a command or session is logged as: what was asked for, and what it has written so far. */
interface Logged {
  readonly id: string;
  readonly command: string;
  readonly source: LogEntry["source"];
  readonly startedAtMs: number;
  readonly stdout: Preview;
  readonly stderr: Preview;
}

/** How it ended. */
export type End = Pick<LogEntry, "status" | "exit_code" | "error"> & { readonly ended_at_ms: number };

/** The entry of a command or session, without `end` of one that runs. */
export function entryOf(call: Caller, { id, startedAtMs, stdout, stderr, ...rest }: Logged, end?: End): LogEntry {
  return {
    request_id: call.request_id,
    execution_id: id,
    account_id: call.account_id,
    sandbox_id: call.sandbox_id,
    ...rest,
    ...(call.working_dir ? { working_dir: call.working_dir } : {}),
    status: end?.status ?? "running",
    exit_code: end?.exit_code ?? -1,
    started_at_ms: startedAtMs,
    execution_time_ms: end ? end.ended_at_ms - startedAtMs : 0,
    stdout: stdout.text,
    stderr: stderr.text,
    stdout_truncated: stdout.truncated,
    stderr_truncated: stderr.truncated,
    ...(end?.error ? { error: end.error } : {}),
  };
}

/** The most bytes kept of a command, a working directory or an error; the outputs have the same limit (`exec/output.ts`). */
const textBytesMax = 4 * 1024;
/** What a row takes besides its texts: field names, ids, keys and its part of the counts. */
const rowBytes = 640;
/** LMDB stores values larger than this in pages of their own. */
const inlineBytesMax = 2_000;
const pageBytes = 4_096;

/** The entry with its texts cut to the maximum length. */
export function boundedEntry({ command, working_dir, error, ...rest }: LogEntry): LogEntry {
  return {
    ...rest,
    ...boundedCommand(command),
    ...(working_dir === undefined ? {} : { working_dir: beginningOf(working_dir, textBytesMax) }),
    ...(error === undefined ? {} : { error: beginningOf(error, textBytesMax) }),
  };
}

/** The beginning of a command and, if it is cut, its full length. */
export function boundedCommand(command: string): Pick<LogEntry, "command" | "command_bytes"> {
  const kept = beginningOf(command, textBytesMax);
  return { command: kept, ...(kept.length < command.length ? { command_bytes: Buffer.byteLength(command) } : {}) };
}

/** The entry without its output, so that it takes no more room than when its command began. */
export function withoutOutput(entry: LogEntry): LogEntry {
  const { stdout, stderr, stdout_truncated, stderr_truncated } = entry;
  return { ...entry, stdout: "", stderr: "", stdout_truncated: stdout_truncated || stdout !== "", stderr_truncated: stderr_truncated || stderr !== "" };
}

/** The bytes that an entry takes on disk. */
export function storedBytesOf({ command, working_dir = "", error = "", stdout, stderr }: LogEntry): number {
  const bytes = rowBytes + [command, working_dir, error, stdout, stderr].reduce((sum, text) => sum + Buffer.byteLength(text), 0);
  return bytes > inlineBytesMax ? Math.ceil(bytes / pageBytes) * pageBytes : bytes;
}

/** The bytes that an entry takes in a message. */
export const messageBytesOf = (entry: LogEntry): number => Buffer.byteLength(JSON.stringify(entry));

const encoder = new TextEncoder();

/** The longest prefix of whole characters that fits into `bytesMax` bytes of UTF-8. */
export function beginningOf(text: string, bytesMax: number): string {
  // A UTF-16 code unit takes at most three bytes of UTF-8; characters of four bytes are two units.
  if (text.length * 3 <= bytesMax) return text;
  return text.slice(0, encoder.encodeInto(text, new Uint8Array(bytesMax)).read);
}
