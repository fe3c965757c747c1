/** Paginated lists. */

import { type CallOptions, split } from "./call-options.ts";
import type { Connection, Query } from "./connection.ts";
import type { LogEntry, Logs, LogsQuery, PageOf, PageQuery } from "./types.ts";

type Load<T> = (query: PageQuery) => Promise<PageOf<T>>;

/**
 * A list. `for await (const item of list)` goes through all pages and fetches each as it is reached; `list.page()` fetches
 * one page; `list.all()` returns everything as an array.
 */
export class List<T extends { readonly id: string }> implements AsyncIterable<T> {
  readonly #load: Load<T>;
  readonly #pageSize: number;

  constructor(load: Load<T>, pageSize = 100) {
    this.#load = load;
    this.#pageSize = pageSize;
  }

  /** @param page page number, starting at 1 */
  page(page = 1): Promise<PageOf<T>> {
    return this.#load({ page, page_size: this.#pageSize });
  }

  async all(): Promise<T[]> {
    const items: T[] = [];
    for await (const item of this) items.push(item);
    return items;
  }

  /** Every item once, even while items are added (the others move to later pages) or removed (they move to earlier ones). */
  async *[Symbol.asyncIterator](): AsyncGenerator<T> {
    const seen = new Set<string>();
    for (let page = 1, lastTotal = 0; ; ) {
      const { data, pagination } = await this.page(page);
      for (const item of data) {
        if (!seen.has(item.id)) yield item;
        seen.add(item.id);
      }
      const gone = lastTotal - pagination.total_items;
      lastTotal = pagination.total_items;
      if (gone > 0 && page > 1) page = Math.max(1, page - Math.ceil(gone / this.#pageSize));
      else if (page < pagination.total_pages) page++;
      else return;
    }
  }
}

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

/** A list of what `show` makes of each item of the answers. @param pageSize 1 to 100 */
export function listOf<I, T extends { readonly id: string }>(
  connection: Connection,
  path: string,
  { pageSize, ...options }: { pageSize?: number } & CallOptions,
  show: (item: I) => T,
): List<T> {
  return new List(async (query) => {
    const { data, pagination } = await connection.get<PageOf<I>>(path, options, { ...query });
    return { data: data.map(show), pagination };
  }, pageSize);
}
