/** Waiting and cancellation. How long a wait takes is never asserted, only what came of it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Deadline, onAbort, stoppedBy, unlessAborted } from "../../../shared/abort.ts";
import { backoffMs, Condition, deferred, pause, retry, StallClock, until, within } from "../../../shared/waiting.ts";

const never = new Promise<never>(() => {});
const longMs = 60_000;

test("a pause ends with the reason of its signal, also where that has come before", async () => {
  const controller = new AbortController();
  const waiting = pause(longMs, controller.signal);
  controller.abort("enough");
  await assert.rejects(waiting, (reason) => reason === "enough");
  await assert.rejects(pause(longMs, controller.signal), (reason) => reason === "enough");
});

test("until asks at once, again until there is an answer, and gives the last one when the time is over", async () => {
  let asked = 0;
  assert.equal(await until(() => ++asked, { pollMs: longMs }), 1);
  assert.equal(await until(async () => ++asked > 4 && "there", { pollMs: 1 }), "there");
  assert.equal(await until(() => undefined, { pollMs: 1, timeoutMs: 20 }), undefined);
  assert.equal(await until(() => false, { pollMs: longMs, timeoutMs: 20 }), false);
  await assert.rejects(
    until(() => Promise.reject(new Error("asked in vain")), { pollMs: 1 }),
    /asked in vain/,
  );
});

test("what fails is done again after the pause that its failure asks for, and thrown when it asks for none", async () => {
  const failures: [string, number][] = [];
  const failing = retry(
    async (attempt) => {
      throw new Error(`try ${attempt}`);
    },
    (error, attempt) => {
      failures.push([(error as Error).message, attempt]);
      return attempt < 2 ? 1 : undefined;
    },
  );
  await assert.rejects(failing, /try 2/);
  assert.deepEqual(failures, [
    ["try 0", 0],
    ["try 1", 1],
    ["try 2", 2],
  ]);
  assert.deepEqual(
    [0, 1, 2, 9].map((attempt) => backoffMs(attempt, { firstMs: 10, maxMs: 35 })),
    [10, 20, 35, 35],
  );
});

test("within brings what comes in time, its error too, and nothing otherwise", async () => {
  assert.equal(await within(Promise.resolve("value"), longMs), "value");
  await assert.rejects(within(Promise.reject(new Error("failed")), longMs), /failed/);
  assert.equal(await within(never, 5), undefined);
});

test("a condition is looked at with every notice, by everybody who waits for it", async () => {
  const changed = new Condition();
  let value = 0;
  const waiting = [1, 2].map((wanted) => changed.until(() => value >= wanted));
  value = 1;
  changed.notify();
  assert.equal(await waiting[0], true);
  assert.equal(await within(waiting[1] as Promise<boolean>, 5), undefined);
  value = 2;
  changed.notify();
  assert.equal(await waiting[1], true);
  assert.equal(await changed.until(() => value > 2, 5), false);
});

test("a stall clock rings when nothing goes on, and never while something does or after it was stopped", async () => {
  const rung = deferred<string>();
  new StallClock(20, () => rung.resolve("stalled")).start();
  assert.equal(await rung.promise, "stalled");

  let rings = 0;
  const clock = new StallClock(200, () => rings++);
  await clock.during(
    (async () => {
      for (let step = 0; step < 40; step++) {
        await pause(10);
        clock.progress();
      }
    })(),
  );
  await pause(250);
  assert.equal(rings, 0);
});

test("a signal stops what it is given for, also where it is aborted before, and is let go of afterwards", async () => {
  const controller = new AbortController();
  let calls = 0;
  await stoppedBy(
    controller.signal,
    () => calls++,
    async () => {},
  );
  onAbort(controller.signal, () => calls++)();
  const stopped = deferred<unknown>();
  const work = stoppedBy(controller.signal, stopped.resolve, () => stopped.promise);
  const waiting = unlessAborted(controller.signal, never);
  controller.abort("stop");
  assert.equal(await work, "stop");
  await assert.rejects(waiting, (reason) => reason === "stop");
  await assert.rejects(unlessAborted(controller.signal, never), (reason) => reason === "stop");
  onAbort(controller.signal, () => calls++);
  assert.equal(calls, 1);
});

test("a deadline is over by its time, by the caller's signal, or not at all once it is released", async () => {
  const late = new Deadline(undefined, 5);
  await assert.rejects(unlessAborted(late.signal, never), /no answer in 5 ms/);
  assert.equal(late.isOver, true);

  const caller = new AbortController();
  const [asked, released] = [new Deadline(caller.signal, longMs), new Deadline(caller.signal, 5)];
  released.release();
  caller.abort("caller");
  assert.deepEqual([asked.signal.reason, asked.isOver], ["caller", false]);
  asked.release();
  await pause(20);
  assert.equal(released.signal.aborted, false);
});
