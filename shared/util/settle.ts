/** Returns the memory that only the start of a program needed. */

/** By then what is loaded in the background after the start is there. */
const afterMs = 5_000;

/**
 * Collects garbage once, soon after the start, which takes tens of milliseconds. V8 itself waits until much more has been
 * allocated, so a part with little to do would keep the garbage of its start. Works only with the flag --expose-gc.
 */
export function settleMemory(): void {
  setTimeout(() => void globalThis.gc?.({ type: "major", flavor: "last-resort", execution: "sync" }), afterMs).unref();
}
