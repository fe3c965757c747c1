/**
 * Cleans up what a test or a test file sets up. In a test: `await using server = await BadServer.start();`.
 * At the top of a file, for all its tests: `const server = await fixture(BadServer.start());`.
 */
import { after, beforeEach } from "node:test";

type Ending = AsyncDisposable | Disposable;

const made: Ending[] = [];
/** Those that are not there yet. */
const inTheMaking = new Set<Promise<unknown>>();
let ending: Promise<void> | undefined;

// The test runner runs no hooks of a file that fails while setting up, so what was already set up would stay.
process.setUncaughtExceptionCaptureCallback((error) => {
  console.error(error);
  endProcess();
});
let isSetUp = false;
beforeEach(() => {
  if (isSetUp) return;
  isSetUp = true;
  process.setUncaughtExceptionCaptureCallback(null);
});
after(endAll);
// When the run is interrupted, the test runner would end this process at once.
for (const signal of ["SIGINT", "SIGTERM"]) process.removeAllListeners(signal).on(signal, endProcess);

/** Registers a fixture for the tests of this file. Fixtures are disposed of after the last test, in reverse order. */
export function fixture<T extends Ending>(made: T): T;
export function fixture<T extends Ending>(making: Promise<T>): Promise<T>;
export function fixture<T extends Ending>(one: T | Promise<T>): T | Promise<T> {
  if (one instanceof Promise) return once(one);
  made.push(one);
  return one;
}

async function once<T extends Ending>(making: Promise<T>): Promise<T> {
  inTheMaking.add(making);
  try {
    return fixture(await making);
  } finally {
    inTheMaking.delete(making);
  }
}

function endProcess(): void {
  void endAll().finally(() => process.exit(1));
}

function endAll(): Promise<void> {
  ending ??= disposeAll();
  return ending;
}

/** Also of what is being made, and of what a file that is interrupted goes on to make. */
async function disposeAll(): Promise<void> {
  while (made.length > 0 || inTheMaking.size > 0) {
    await Promise.allSettled(inTheMaking);
    for (let one = made.pop(); one; one = made.pop()) {
      if (Symbol.asyncDispose in one) await one[Symbol.asyncDispose]();
      else one[Symbol.dispose]();
    }
  }
}

/** Runs when the tests of this file are over, before earlier fixtures are disposed of. */
export function atEnd(end: () => unknown): void {
  made.push({ [Symbol.asyncDispose]: async () => void (await end()) });
}
