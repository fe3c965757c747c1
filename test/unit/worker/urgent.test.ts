import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Urgent } from "../../../worker/urgent.ts";

const { signal } = new AbortController();
const longMs = 60_000;

/** Whether a promise is settled once everything already due has run. */
async function isSettled(promise: Promise<void>): Promise<boolean> {
  let settled = false;
  promise.then(
    () => (settled = true),
    () => (settled = true),
  );
  await sleep(0);
  return settled;
}

test("other work continues at once when nothing is urgent, and otherwise after the urgent work", async () => {
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

test("urgent work that never ends, or fails, does not hold back other work for good", async () => {
  const urgent = new Urgent();
  await assert.rejects(urgent.run(() => Promise.reject(new Error("failed"))));
  await urgent.whenQuiet(longMs, signal);
  void urgent.run(() => new Promise(() => {}));
  await urgent.whenQuiet(1, signal);
});

test("a wait can be aborted", async () => {
  const urgent = new Urgent();
  void urgent.run(() => new Promise(() => {}));
  const stopping = new AbortController();
  const waiting = urgent.whenQuiet(longMs, stopping.signal);
  stopping.abort(new Error("stop"));
  await assert.rejects(waiting);
});
