/** Which worker gets a new sandbox. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { rankWorkers } from "../../../../gateway/fleet/placement.ts";
import { GiB, presentWorker as worker } from "../../../helpers/present-worker.ts";

const ranked = (...workers: ReturnType<typeof worker>[]): string[] => rankWorkers(workers).map(({ id }) => id);

test("workers that accept nothing are left out", () => {
  assert.deepEqual(ranked(worker("a", { accepts: false }), worker("b")), ["b"]);
  assert.deepEqual(ranked(worker("a", { accepts: false })), []);
  assert.deepEqual(ranked(), []);
});

test("more free memory, fewer sandboxes and less load come first", () => {
  assert.deepEqual(ranked(worker("small", { memory_free_bytes: GiB }), worker("big")), ["big", "small"]);
  assert.deepEqual(ranked(worker("full", { sandboxes: 9 }), worker("empty")), ["empty", "full"]);
  assert.deepEqual(ranked(worker("busy", { load_per_cpu: 4 }), worker("idle")), ["idle", "busy"]);
});

test("a reference names the worker and its process", () => {
  assert.deepEqual(rankWorkers([worker("a")]), [{ id: "a", peer: "peer-a" }]);
});
