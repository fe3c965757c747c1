/** Long work on the event loop, done in slices so that other work gets its turn in between. */
import { setImmediate as nextTurn } from "node:timers/promises";

/** The longest time that one slice keeps other work waiting. */
const sliceMs = 2;

/** The last slice waiting for its turn. Each turn runs one slice, however many long tasks there are. */
let last: Promise<unknown> = Promise.resolve();

/** Yields the items one by one. Use it wherever their number grows with the stored data. */
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
