/** Which worker gets a new sandbox. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { rankWorkers } from "../../../../gateway/fleet/placement.ts";
import type { WorkerPresence } from "../../../../shared/bus/heartbeat.ts";

const GiB = 1024 ** 3;
const worker = (id: string, changes: Partial<WorkerPresence> = {}): { peer: string; worker: WorkerPresence } => ({
  peer: `peer-${id}`,
  worker: {
    id,
    draining: false,
    sandboxes: 0,
    sandboxes_max: 10,
    executions: 0,
    executions_total: 0,
    memory_free_bytes: 8 * GiB,
    disk_free_bytes: 100 * GiB,
    load_per_cpu: 0,
    rss_bytes: 0,
    accepts: true,
    host: [],
    ...changes,
  },
});
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
