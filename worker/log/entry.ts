/** Entries of the execution log: no caller's text is kept longer than this, and everything has a size. */

import type { LogEntry } from "../../shared/bus/contract/commands.ts";
import { beginningOf } from "../../shared/util/beginning.ts";

/** Bytes that are kept of a command, a folder or a reason; of the outputs as many are kept (`exec/output.ts`). */
const textBytesMax = 4 * 1024;
/** What a row takes beside its texts: the names of its fields, its ids, its keys and its part of the counts. */
const rowBytes = 640;
/** A value that is larger than this lies in pages of its own. */
const inlineBytesMax = 2_000;
const pageBytes = 4_096;

/** The entry with texts of bounded length. */
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

/** The entry without what was printed, so that it takes no more room than when its command began. */
export function withoutOutput(entry: LogEntry): LogEntry {
  const { stdout, stderr, stdout_truncated, stderr_truncated } = entry;
  return { ...entry, stdout: "", stderr: "", stdout_truncated: stdout_truncated || stdout !== "", stderr_truncated: stderr_truncated || stderr !== "" };
}

/** What an entry takes of the disk. */
export function storedBytesOf({ command, working_dir = "", error = "", stdout, stderr }: LogEntry): number {
  const bytes = rowBytes + [command, working_dir, error, stdout, stderr].reduce((sum, text) => sum + Buffer.byteLength(text), 0);
  return bytes > inlineBytesMax ? Math.ceil(bytes / pageBytes) * pageBytes : bytes;
}

/** What an entry takes of a message. */
export const messageBytesOf = (entry: LogEntry): number => Buffer.byteLength(JSON.stringify(entry));
