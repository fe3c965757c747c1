/** Entries of the execution log, with callers' texts cut to a maximum length and the sizes of an entry. */

import type { LogEntry } from "../../shared/bus/contract/commands.ts";
import { beginningOf } from "../../shared/util/beginning.ts";

/** The most bytes kept of a command, a working directory or an error; the outputs have the same limit (`exec/output.ts`). */
const textBytesMax = 4 * 1024;
/** What a row takes besides its texts: field names, ids, keys and its part of the counts. */
const rowBytes = 640;
/** LMDB stores values larger than this in pages of their own. */
const inlineBytesMax = 2_000;
const pageBytes = 4_096;

/** The entry with its texts cut to the maximum length. */
export function boundedEntry({ command, working_dir, error, ...rest }: LogEntry): LogEntry {
  const kept = beginningOf(command, textBytesMax);
  return {
    ...rest,
    command: kept,
    ...(kept.length < command.length ? { command_bytes: Buffer.byteLength(command) } : {}),
    ...(working_dir === undefined ? {} : { working_dir: beginningOf(working_dir, textBytesMax) }),
    ...(error === undefined ? {} : { error: beginningOf(error, textBytesMax) }),
  };
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
