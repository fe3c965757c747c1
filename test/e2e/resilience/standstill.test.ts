/** A worker that stands still in the middle of something, and then goes on. */
import assert from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { isStopped } from "../../../worker/runtime/process/proc.ts";
import { Api } from "../../helpers/api.ts";
import { fixture } from "../../helpers/fixture.ts";
import { temporaryFolder } from "../../helpers/folder.ts";
import { plain } from "../../helpers/resilience.ts";
import { startStack } from "../../helpers/stack.ts";
import { until } from "../../helpers/until.ts";

/** Longer than an exec server may take, and shorter than a worker may be silent. */
const stillMs = 6_500;

const { path: scratch } = fixture(temporaryFolder("standstill", 0o755));
const points = join(scratch, "point");
const stack = await fixture(startStack({ name: "standstill", settings: { ...plain, SANDGATE_TEST_FAULT: points } }));
const api = new Api(stack);

test("a command that was sent to its sandbox before the worker stood still is neither killed nor started again", async () => {
  const id = await api.create();
  await api.execute(id, "true");
  writeFileSync(points, "execute.sent SIGSTOP");
  const call = api.execute(id, "echo run >> /root/runs; sleep 1; echo whole");
  try {
    await until("the worker stands still", () => isStopped(stack.worker.pid));
    await sleep(stillMs);
  } finally {
    rmSync(points);
    stack.worker.signal("SIGCONT");
  }
  const { exit_code, stdout } = await call;
  assert.deepEqual([exit_code, stdout], [0, "whole\n"]);
  assert.equal((await api.execute(id, "cat /root/runs")).stdout, "run\n");
});
