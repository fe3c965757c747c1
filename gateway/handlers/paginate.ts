/** Pagination of lists. */

import { type PageQuery, type Pagination, pageSizeDefault } from "../../shared/schemas/pages.ts";

/** The range of items on a page, and the pagination info of the answer. */
export function paginationOf(total_items: number, { page = 1, page_size = pageSizeDefault }: PageQuery) {
  const pagination: Pagination = { page, page_size, total_items, total_pages: Math.ceil(total_items / page_size) };
  return { from: (page - 1) * page_size, to: page * page_size, pagination };
}

/** One page of a list, each item converted by `show`. */
export function paginate<T, V>(items: readonly T[], query: PageQuery, show: (item: T) => V): { data: V[]; pagination: Pagination } {
  const { from, to, pagination } = paginationOf(items.length, query);
  return { data: items.slice(from, to).map(show), pagination };
}
