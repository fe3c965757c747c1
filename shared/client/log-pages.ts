/** The command log, page by page. */
import { type CallOptions, split } from "./call-options.ts";
import type { Connection, Query } from "./connection.ts";
import type { LogEntry, Logs, LogsQuery } from "./types.ts";

/** One page. */
export function readLogs(connection: Connection, options: LogsQuery & CallOptions): Promise<Logs> {
  const [query, call] = split(options);
  return connection.get("/v1/sandboxes/logs", call, query as Query);
}

/** Every entry once, newest first. Pages are fetched as the loop reaches them. */
export async function* entriesOf(read: (cursor: { cursor?: string }) => Promise<Logs>): AsyncGenerator<LogEntry, void, void> {
  let next: { cursor?: string } | undefined = {};
  while (next) {
    const { logs, next_cursor }: Logs = await read(next);
    yield* logs;
    next = next_cursor === undefined ? undefined : { cursor: next_cursor };
  }
}
