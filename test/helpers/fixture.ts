/**
 * Cleans up what a test or a test file sets up. In a test: `await using server = await BadServer.start();`.
 * At the top of a file, for all its tests: `const server = await fixture(BadServer.start());`.
 */
import { after, beforeEach } from "node:test";

type Ending = AsyncDisposable | Disposable;

const made: Ending[] = [];

// The test runner runs no hooks of a file that fails while setting up, so what was already set up would stay.
process.setUncaughtExceptionCaptureCallback((error) => {
  console.error(error);
  void endAll().finally(() => process.exit(1));
});
let isSetUp = false;
beforeEach(() => {
  if (isSetUp) return;
  isSetUp = true;
  process.setUncaughtExceptionCaptureCallback(null);
  // When the run is interrupted, the test runner would end this process at once.
  process.removeAllListeners("SIGTERM").once("SIGTERM", () => void endAll().finally(() => process.exit(1)));
});
after(endAll);

/** Registers a fixture for the tests of this file. Fixtures are disposed of after the last test, in reverse order. */
export function fixture<T extends Ending>(made: T): T;
export function fixture<T extends Ending>(making: Promise<T>): Promise<T>;
export function fixture<T extends Ending>(one: T | Promise<T>): T | Promise<T> {
  if (one instanceof Promise) return one.then((made) => fixture(made));
  made.push(one);
  return one;
}

async function endAll(): Promise<void> {
  for (let one = made.pop(); one; one = made.pop()) {
    if (Symbol.asyncDispose in one) await one[Symbol.asyncDispose]();
    else one[Symbol.dispose]();
  }
}

/** Runs when the tests of this file are over, before earlier fixtures are disposed of. */
export function atEnd(end: () => unknown): void {
  made.push({ [Symbol.asyncDispose]: async () => void (await end()) });
}
