/**
 * Whatever a test or a test file sets up is ended with it. In a test: `await using server = await BadServer.start();`.
 * At the top of a file, for all its tests: `const server = await fixture(BadServer.start());`.
 */
import { after, beforeEach } from "node:test";

type Ending = AsyncDisposable | Disposable;

const made: Ending[] = [];

// While a file is still setting up, the test runner does not run its hooks: what was set up before an error would stay.
process.setUncaughtExceptionCaptureCallback((error) => {
  console.error(error);
  void endAll().finally(() => process.exit(1));
});
let isSetUp = false;
beforeEach(() => {
  if (isSetUp) return;
  isSetUp = true;
  process.setUncaughtExceptionCaptureCallback(null);
  // When the run is broken off, the test runner would end this process at once.
  process.removeAllListeners("SIGTERM").once("SIGTERM", () => void endAll().finally(() => process.exit(1)));
});
after(endAll);

/** What was made for the tests of this file; it is ended after the last of them, what was made last first. */
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

/** Is done when the tests of this file are over, before what was made earlier is ended. */
export function atEnd(end: () => unknown): void {
  made.push({ [Symbol.asyncDispose]: async () => void (await end()) });
}
