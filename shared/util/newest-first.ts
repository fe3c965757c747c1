/** The order of lists. */

/** Sorts what has an id and a time, newest first; ids are sortable by time, so equal times keep one order. */
export function newestFirst<T extends { readonly id: string; readonly created_at_ms: number }>(items: T[]): T[] {
  return items.sort((a, b) => b.created_at_ms - a.created_at_ms || (a.id < b.id ? 1 : -1));
}
