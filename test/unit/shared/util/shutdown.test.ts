import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { pino } from "pino";
import { Shutdown } from "../../../../shared/util/shutdown.ts";
import { quiet } from "../../../helpers/nats.ts";

test("what was opened last is closed first, one at a time", async () => {
  const shutdown = new Shutdown(quiet);
  const log: string[] = [];
  for (const name of ["bus", "store", "server"]) {
    shutdown.onStop(name, async () => {
      log.push(`${name} closes`);
      await turn();
      log.push(`${name} closed`);
    });
  }
  assert.equal(await shutdown.stop("test"), 0);
  assert.deepEqual(log, ["server closes", "server closed", "store closes", "store closed", "bus closes", "bus closed"]);
});

test("a stop runs once, and every caller waits for it", async () => {
  const shutdown = new Shutdown(quiet);
  let closed = 0;
  shutdown.onStop("slow", async () => {
    await turn();
    closed++;
  });
  assert.equal(shutdown.stopping, false);
  const stops = [shutdown.stop("first"), shutdown.stop("second")];
  assert.equal(shutdown.stopping, true);
  await stops[1];
  assert.equal(closed, 1);
  await Promise.all([...stops, shutdown.stop("third")]);
  assert.equal(closed, 1);
});

test("a step that fails does not keep the others from closing", async () => {
  const shutdown = new Shutdown(quiet);
  const closed: string[] = [];
  shutdown.onStop("first", () => void closed.push("first"));
  shutdown.onStop("throws", () => {
    throw new Error("no");
  });
  shutdown.onStop("rejects", () => Promise.reject(new Error("no")));
  shutdown.onStop("last", () => void closed.push("last"));
  assert.equal(await shutdown.stop("test"), 1, "the exit code tells of it");
  assert.deepEqual(closed, ["last", "first"]);
});

test("a step that fails is logged by its name", async () => {
  const lines: { step?: string; err?: { message: string } }[] = [];
  const shutdown = new Shutdown(pino({}, { write: (line: string) => void lines.push(JSON.parse(line)) }));
  shutdown.onStop("store", () => Promise.reject(new Error("no")));
  await shutdown.stop("test");
  assert.deepEqual(
    lines.filter(({ step }) => step).map(({ step, err }) => [step, err?.message]),
    [["store", "no"]],
  );
});

test("what is opened while the process stops is closed at once, and waited for", async () => {
  const shutdown = new Shutdown(quiet);
  const closed: string[] = [];
  shutdown.onStop("bus", () => void closed.push("bus"));
  shutdown.onStop("server", async () => {
    shutdown.onStop("late", async () => {
      closed.push("late begins");
      await turn();
      await turn();
      closed.push("late");
    });
    assert.deepEqual(closed, ["late begins"]);
    shutdown.onStop("late and broken", () => Promise.reject(new Error("no")));
  });
  assert.equal(await shutdown.stop("test"), 1);
  assert.deepEqual(closed.toSorted(), ["bus", "late", "late begins"]);
});
