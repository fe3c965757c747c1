import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
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
  await lifecycle.stop("test");
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
  await lifecycle.stop("test");
  assert.deepEqual(closed, ["last", "first"]);
});
