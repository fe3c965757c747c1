/** Long work on an event loop: done in slices, between which everything else has its turn. */
import { setImmediate as nextTurn } from "node:timers/promises";

/** So long at most others wait for one slice. */
const sliceMs = 2;

/** The last slice that waits for its turn. There is one in each turn, however many tasks are long. */
let last: Promise<unknown> = Promise.resolve();

/** The items one by one. To be used wherever their number grows with what is stored. */
export async function* yielding<T>(items: Iterable<T>): AsyncGenerator<T, void, void> {
  let endMs = performance.now() + sliceMs;
  for (const item of items) {
    if (performance.now() >= endMs) {
      last = last.then(() => nextTurn());
      await last;
      endMs = performance.now() + sliceMs;
    }
    yield item;
  }
}
