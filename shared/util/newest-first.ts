/** The order of lists. */

interface Dated {
  readonly id: string;
  readonly created_at_ms: number;
}

/** Newest first. Ids are sortable by time, so items with equal times have a stable order too. */
const byAge = (a: Dated, b: Dated): number => b.created_at_ms - a.created_at_ms || (a.id < b.id ? 1 : a.id > b.id ? -1 : 0);

/** Sorts items by time, newest first. */
export function newestFirst<T extends Dated>(items: T[]): T[] {
  return items.sort(byAge);
}

/** Where an item stands among sorted ones, or would stand. */
export function placeOf(item: Dated, sorted: readonly Dated[]): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (byAge(sorted[middle] as Dated, item) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}
