import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { pino } from "pino";
import { Lifecycle } from "../../../../shared/util/lifecycle.ts";
import { quiet } from "../../../helpers/nats.ts";

test("what was opened last is closed first, one at a time", async () => {
  const lifecycle = new Lifecycle(quiet);
  const log: string[] = [];
  for (const name of ["bus", "store", "server"]) {
    lifecycle.onStop(name, async () => {
      log.push(`${name} closes`);
      await turn();
      log.push(`${name} closed`);
    });
  }
  assert.equal(await lifecycle.stop("test"), 0);
  assert.deepEqual(log, ["server closes", "server closed", "store closes", "store closed", "bus closes", "bus closed"]);
});

test("a stop runs once, and every caller waits for it", async () => {
  const lifecycle = new Lifecycle(quiet);
  let closed = 0;
  lifecycle.onStop("slow", async () => {
    await turn();
    closed++;
  });
  assert.equal(lifecycle.stopping, false);
  const stops = [lifecycle.stop("first"), lifecycle.stop("second")];
  assert.equal(lifecycle.stopping, true);
  await stops[1];
  assert.equal(closed, 1);
  await Promise.all([...stops, lifecycle.stop("third")]);
  assert.equal(closed, 1);
});

test("a step that fails does not keep the others from closing", async () => {
  const lifecycle = new Lifecycle(quiet);
  const closed: string[] = [];
  lifecycle.onStop("first", () => void closed.push("first"));
  lifecycle.onStop("throws", () => {
    throw new Error("no");
  });
  lifecycle.onStop("rejects", () => Promise.reject(new Error("no")));
  lifecycle.onStop("last", () => void closed.push("last"));
  assert.equal(await lifecycle.stop("test"), 1, "the exit code tells of it");
  assert.deepEqual(closed, ["last", "first"]);
});

test("a step that fails is logged by its name", async () => {
  const lines: { step?: string; err?: { message: string } }[] = [];
  const lifecycle = new Lifecycle(pino({}, { write: (line: string) => void lines.push(JSON.parse(line)) }));
  lifecycle.onStop("store", () => Promise.reject(new Error("no")));
  await lifecycle.stop("test");
  assert.deepEqual(
    lines.filter(({ step }) => step).map(({ step, err }) => [step, err?.message]),
    [["store", "no"]],
  );
});

test("what is opened while the process stops is closed at once, and waited for", async () => {
  const lifecycle = new Lifecycle(quiet);
  const closed: string[] = [];
  lifecycle.onStop("bus", () => void closed.push("bus"));
  lifecycle.onStop("server", async () => {
    lifecycle.onStop("late", async () => {
      closed.push("late begins");
      await turn();
      await turn();
      closed.push("late");
    });
    assert.deepEqual(closed, ["late begins"]);
    lifecycle.onStop("late and broken", () => Promise.reject(new Error("no")));
  });
  assert.equal(await lifecycle.stop("test"), 1);
  assert.deepEqual(closed.toSorted(), ["bus", "late", "late begins"]);
});
