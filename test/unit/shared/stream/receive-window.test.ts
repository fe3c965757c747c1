/** How large windows become: by how they are read, and by what all of them may have together. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { leastWindowBytes, ReceiveWindow, WindowBudget } from "../../../../shared/stream/receive-window.ts";

const KiB = 1024;
const most = 8 * leastWindowBytes;
const step = leastWindowBytes / 2;

/** A window, and a clock that says how long each step takes to read. */
function opened(budget: WindowBudget, mostBytes = most) {
  const clock = { nowMs: 0 };
  const window = new ReceiveWindow(mostBytes, true, budget, () => clock.nowMs);
  const read = (bytes: number, stepMs: number): void => {
    for (let left = bytes; left > 0; left -= step) {
      clock.nowMs += stepMs;
      window.read(step);
    }
  };
  return { window, read };
}

test("a window begins small, grows to its largest size while it is read fast, and shrinks again while it is read slowly", () => {
  const { window, read } = opened(new WindowBudget(most));
  assert.equal(window.windowBytes, leastWindowBytes);
  read(20 * most, 1);
  assert.equal(window.windowBytes, most);
  read(20 * most, 5_000);
  assert.equal(window.windowBytes, leastWindowBytes);
  assert.equal(opened(new WindowBudget(most), 10_000).window.windowBytes, 10_000, "never more than it may have");
});

test("what the network takes for a client that does not read makes no window larger", () => {
  const { window, read } = opened(new WindowBudget(most));
  read(448 * KiB, 0);
  assert.equal(window.windowBytes, leastWindowBytes);
});

test("all windows share one budget, and those of streams that are over give back what they had", () => {
  const budget = new WindowBudget(most - leastWindowBytes);
  const [first, second] = [opened(budget), opened(budget)];
  first.read(20 * most, 1);
  second.read(20 * most, 1);
  assert.deepEqual([first.window.windowBytes, second.window.windowBytes], [most, leastWindowBytes]);
  first.window.close();
  first.window.close();
  second.read(20 * most, 1);
  assert.equal(second.window.windowBytes, most);
  assert.equal(budget.take(1), false, "what was given back twice counts once");
});

test("credit is granted for all that was read and a window more, and never taken back", () => {
  const { window, read } = opened(new WindowBudget(most));
  let [readBytes, granted] = [0, leastWindowBytes];
  const clocks = [1, 5_000, 1, 5_000];
  for (const stepMs of clocks) {
    for (let index = 0; index < 400; index++) {
      read(0, stepMs);
      readBytes += step;
      const grant = window.read(step);
      if (grant === undefined) continue;
      assert.ok(grant > granted, `${grant} after ${granted}`);
      assert.equal(grant, readBytes + window.windowBytes);
      granted = grant;
    }
    assert.ok(granted > readBytes, "the sender is never without credit when everything was read");
  }
});
