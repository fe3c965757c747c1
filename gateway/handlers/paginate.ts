/** Pages of a list. */

const pageSizeDefault = 20;

interface PageOf<T> {
  readonly data: readonly T[];
  readonly pagination: { readonly page: number; readonly page_size: number; readonly total_items: number; readonly total_pages: number };
}

/** One page of a list, each item shown by `show`. */
export function paginate<T, V>(items: readonly T[], query: { page?: number; page_size?: number }, show: (item: T) => V): PageOf<V> {
  const { page = 1, page_size = pageSizeDefault } = query;
  const data = items.slice((page - 1) * page_size, page * page_size).map(show);
  return { data, pagination: { page, page_size, total_items: items.length, total_pages: Math.ceil(items.length / page_size) } };
}
