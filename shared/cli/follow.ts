/** Follows the log: prints commands as they start and as they end. */
import { entriesOf } from "../client/pages.ts";
import type { LogEntry, Logs, LogsQuery } from "../client/types.ts";
import { pause } from "../waiting.ts";

const pauseMs = 3_000;
/** Maximum number of entries on a page. */
export const limitMax = 1_000;
/** How late an entry may appear at most, compared with entries that started after it. */
const lateMs = 60_000;

type Read = (query: LogsQuery) => Promise<Logs>;

const idOf = ({ execution_id, request_id }: LogEntry): string => execution_id ?? request_id;

/** Yields the entries to show: those of `first`, oldest first, then new ones. Never ends. */
export async function* follow(read: Read, first: Logs, from: string | undefined): AsyncGenerator<LogEntry, never> {
  const known = new Known();
  yield* known.newsOf(first.logs);
  // Entries older than the requested rows are not wanted later either.
  let since = first.total > first.logs.length ? first.logs.at(-1)?.timestamp : from;
  for (;;) {
    await pause(pauseMs);
    yield* known.newsOf(await whole(read, since));
    const running = known.nextBefore(since);
    if (running) yield* known.newsOf((await read({ from: running, to: running, limit: limitMax })).logs);
    since = later(since, known.newest);
    known.forgetBefore(since);
  }
}

/** All entries since a time, newest first. */
async function whole(read: Read, from: string | undefined): Promise<LogEntry[]> {
  const entries: LogEntry[] = [];
  for await (const entry of entriesOf((cursor) => read({ ...(from ? { from } : {}), ...cursor, limit: limitMax }))) entries.push(entry);
  return entries;
}

function later(since: string | undefined, newest: string | undefined): string | undefined {
  if (newest === undefined) return since;
  const time = new Date(Date.parse(newest) - lateMs).toISOString();
  return since === undefined || time > since ? time : since;
}

/** The entries shown so far, including those whose end is still to be shown. */
class Known {
  readonly #entries = new Map<string, LogEntry>();
  #asked = 0;

  /** The newest timestamp of all entries. */
  newest: string | undefined;

  /** @param logs newest first, as the API returns them */
  newsOf(logs: readonly LogEntry[]): LogEntry[] {
    const news = logs.filter((entry) => {
      const shown = this.#entries.get(idOf(entry));
      this.#entries.set(idOf(entry), entry);
      if (this.newest === undefined || entry.timestamp > this.newest) this.newest = entry.timestamp;
      return !shown || (shown.status === "running" && entry.status !== "running");
    });
    return news.reverse();
  }

  /** The timestamp of a running entry that is too old to be among the new ones; rotates through all such entries. */
  nextBefore(since: string | undefined): string | undefined {
    const running = [...this.#entries.values()].filter(({ status, timestamp }) => status === "running" && since !== undefined && timestamp < since);
    return running[this.#asked++ % running.length]?.timestamp;
  }

  forgetBefore(since: string | undefined): void {
    for (const [id, { status, timestamp }] of this.#entries) if (status !== "running" && since !== undefined && timestamp < since) this.#entries.delete(id);
  }
}
