/** Memory of frames that is used again. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Blocks } from "../../../../../shared/stream/line/blocks.ts";

const large = 100_000;

test("what was given back is used again, and by one frame at a time", () => {
  const blocks = new Blocks();
  const first = blocks.take(large);
  const second = blocks.take(large);
  assert.notEqual(first.buffer, second.buffer);
  blocks.giveBack(first);
  const third = blocks.take(large + 1);
  assert.equal(third.buffer, first.buffer);
  assert.equal(third.length, large + 1);
  assert.notEqual(blocks.take(large).buffer, third.buffer);
});

test("small frames and very large ones have memory of their own", () => {
  const blocks = new Blocks();
  for (const bytes of [0, 1, 1_000, 1_000_000]) {
    const frame = blocks.take(bytes);
    assert.equal(frame.length, bytes);
    blocks.giveBack(frame);
    assert.notEqual(blocks.take(large).buffer, frame.buffer);
  }
});

test("no more is kept than may be on its way", () => {
  const blocks = new Blocks();
  const frames = Array.from({ length: 100 }, () => blocks.take(large));
  for (const frame of frames) blocks.giveBack(frame);
  const again = new Set(Array.from({ length: 100 }, () => blocks.take(large).buffer));
  assert.equal(frames.filter(({ buffer }) => again.has(buffer)).length, 16);
});
