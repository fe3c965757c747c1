/** Long work in slices, and texts that are cut. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { yielding } from "../../../../shared/util/yielding.ts";
import { beginningOf } from "../../../../worker/log/entry.ts";
import { Turns } from "../../../helpers/turns.ts";

/** Numbers of which each takes its time. */
function* slow(count: number, workMs: number): Generator<number> {
  for (let index = 0; index < count; index++) {
    for (const endMs = performance.now() + workMs; performance.now() < endMs; );
    yield index;
  }
}

test("all items come in their order, and others have their turn between", async () => {
  const turns = new Turns();
  const seen: number[] = [];
  for await (const item of yielding(slow(50, 1))) seen.push(item);
  assert.deepEqual(
    seen,
    Array.from({ length: 50 }, (_, index) => index),
  );
  assert.ok(turns.stop() >= 10);
});

test("of many long tasks one slice at most is done in a turn", async () => {
  let slices = 0;
  const work = async (): Promise<void> => {
    for await (const _item of yielding(slow(10, 3))) slices++;
  };
  const tasks = Promise.all(Array.from({ length: 8 }, work));
  let most = 0;
  for (let before = slices; slices < 80; before = slices) {
    await new Promise((resolve) => setImmediate(resolve));
    // The first item of each is taken at once.
    if (before >= 8) most = Math.max(most, slices - before);
  }
  await tasks;
  assert.ok(most <= 2, `${most} slices in one turn`);
});

test("what is iterated is closed when the loop is left", async () => {
  let closed = false;
  function* items(): Generator<number> {
    try {
      yield 1;
      yield 2;
    } finally {
      closed = true;
    }
  }
  for await (const _item of yielding(items())) break;
  assert.ok(closed);
});

for (const [text, bytes, expected] of [
  ["", 4, ""],
  ["abcd", 4, "abcd"],
  ["abcde", 4, "abcd"],
  ["aé", 2, "a"],
  ["a€b", 4, "a€"],
  ["a€b", 3, "a"],
  ["😀😀", 7, "😀"],
  ["\u0001\u0001\u0001", 2, "\u0001\u0001"],
] as const) {
  test(`the first ${bytes} bytes of ${JSON.stringify(text)} are ${JSON.stringify(expected)}`, () => assert.equal(beginningOf(text, bytes), expected));
}
