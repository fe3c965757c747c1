import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Urgent } from "../../../worker/urgent.ts";

const { signal } = new AbortController();
const longMs = 60_000;

/** Whether a promise is settled after what is due now. */
async function isSettled(promise: Promise<void>): Promise<boolean> {
  let settled = false;
  promise.then(
    () => (settled = true),
    () => (settled = true),
  );
  await sleep(0);
  return settled;
}

test("other work goes on at once where nothing is urgent, and after the end of what is", async () => {
  const urgent = new Urgent();
  assert.equal(await isSettled(urgent.whenQuiet(longMs, signal)), true);
  const task = Promise.withResolvers<string>();
  const running = urgent.run(() => task.promise);
  const waiting = urgent.whenQuiet(longMs, signal);
  assert.equal(await isSettled(waiting), false);
  task.resolve("done");
  assert.equal(await running, "done");
  assert.equal(await isSettled(waiting), false, "more of it may follow");
  await waiting;
});

test("what is urgent without an end, or fails, does not keep other work back for good", async () => {
  const urgent = new Urgent();
  await assert.rejects(urgent.run(() => Promise.reject(new Error("failed"))));
  await urgent.whenQuiet(longMs, signal);
  void urgent.run(() => new Promise(() => {}));
  await urgent.whenQuiet(1, signal);
});

test("whoever waits can be told to stop", async () => {
  const urgent = new Urgent();
  void urgent.run(() => new Promise(() => {}));
  const stopping = new AbortController();
  const waiting = urgent.whenQuiet(longMs, stopping.signal);
  stopping.abort(new Error("stop"));
  await assert.rejects(waiting);
});
