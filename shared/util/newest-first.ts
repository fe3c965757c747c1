/** The order of lists. */

/** Sorts items by time, newest first. Ids are sortable by time, so items with equal times have a stable order too. */
export function newestFirst<T extends { readonly id: string; readonly created_at_ms: number }>(items: T[]): T[] {
  return items.sort((a, b) => b.created_at_ms - a.created_at_ms || (a.id < b.id ? 1 : -1));
}
