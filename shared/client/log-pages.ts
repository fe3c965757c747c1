/** The log of what ran, page after page. */
import type { LogEntry, Logs } from "./types.ts";

/** Every entry once, newest first; pages are read when the loop gets there. */
export async function* entriesOf(read: (cursor: string | undefined) => Promise<Logs>): AsyncGenerator<LogEntry, void, void> {
  let cursor: string | undefined;
  do {
    const page = await read(cursor);
    yield* page.logs;
    cursor = page.next_cursor;
  } while (cursor !== undefined);
}
