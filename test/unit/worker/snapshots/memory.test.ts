/** What a worker does about memory: which snapshots get it, and which sandboxes start with it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Request } from "../../../../shared/bus/contract/contract.ts";
import type { SnapshotEntry } from "../../../../shared/bus/entries.ts";
import type { MemoryWish } from "../../../../shared/memory.ts";
import type { Container } from "../../../../worker/runtime/container/container.ts";
import type { LiveSandbox, Sandboxes } from "../../../../worker/sandboxes/registry.ts";
import { type MemoryImages, memoryInUse, newMemoryImage, noMemoryImages, planArrival, planRestore, planSnapshot } from "../../../../worker/snapshots/memory.ts";
import type { Snapshots } from "../../../../worker/snapshots/registry.ts";

const sandbox = {} as LiveSandbox;
const container = {} as Container;
const able: Pick<MemoryImages, "refusal" | "startRefusal" | "fetchRefusal"> = {
  refusal: () => undefined,
  startRefusal: () => undefined,
  fetchRefusal: undefined,
};
const incapable = "this worker cannot take the memory of sandboxes";

test("a worker that cannot take memory takes files and says so, or refuses where memory is required", async () => {
  const plan = (memory_wish?: MemoryWish) =>
    planSnapshot(noMemoryImages(incapable), sandbox, container, { quick: false, ...(memory_wish ? { memory_wish } : {}) });
  assert.deepEqual(await plan("prefer"), { memory: false, reason: incapable });
  assert.deepEqual(await plan("skip"), { memory: false, reason: undefined });
  assert.deepEqual(await plan(), { memory: false, reason: undefined }, "a gateway that knows nothing of it did not ask for it");
  await assert.rejects(plan("require"), { code: "unprocessable", reason: "memory_unavailable", message: new RegExp(incapable) });
});

test("one that can includes memory, unless nobody wants it or the snapshot is quick", async () => {
  const plan = (memory_wish: MemoryWish, quick = false) => planSnapshot(able, sandbox, container, { quick, memory_wish });
  for (const wish of ["prefer", "require"] as const) assert.deepEqual(await plan(wish), { memory: true });
  assert.deepEqual(await plan("skip"), { memory: false, reason: undefined });
  assert.deepEqual(await plan("prefer", true), { memory: false, reason: "a quick snapshot does not include memory" });
  await assert.rejects(plan("require", true), { reason: "memory_unavailable" });
});

test("what stands against the memory of one sandbox is not asked for when nobody wants it", async () => {
  const busy = { refusal: () => Promise.resolve("a terminal is open") };
  assert.deepEqual(await planSnapshot(busy, sandbox, container, { quick: false, memory_wish: "prefer" }), { memory: false, reason: "a terminal is open" });
  const unasked = { refusal: () => assert.fail("asked") };
  assert.deepEqual(await planSnapshot(unasked, sandbox, container, { quick: false, memory_wish: "skip" }), { memory: false, reason: undefined });
});

const manifest = {
  image: "default",
  base: { id: "0".repeat(64), env: [], working_dir: "/", user: "" },
  layers: [],
  ...{ cpu: 1, memory: 512, storage: 5, network: "none", env_vars: { A: "1" } },
} as const;
const snapshot = { id: "snap_1", account_id: "acct_1", memory: true, memory_image: 7 } as SnapshotEntry;
const call = {
  ...{ request_id: "req_1", account_id: "acct_1", key_id: "key_1", reservation_id: "rsv_1", peer: "gw", wait: true },
  ...{ snapshot_id: snapshot.id, worker_id: "w", manifest, cpu: 1, memory: 512, storage: 5, env_vars: { A: "1" } },
  ...{ memory_wish: "prefer", memory_taken: true },
} as unknown as Request<"restore">;
const planned = (changes: Partial<Request<"restore">> = {}, known = snapshot, memory: Pick<MemoryImages, "startRefusal" | "fetchRefusal"> = able) =>
  planRestore({ workerId: "w", memory, snapshots: { get: (id) => (id === known.id ? known : undefined) } }, { ...call, ...changes });

test("a sandbox starts with the memory of its snapshot where that is, and knows how much it wants that", () => {
  for (const wish of ["prefer", "require"] as const)
    assert.deepEqual(planned({ memory_wish: wish }), { memory_restored: true, memory_from: { image: 7, wish } });
});

const without: [what: string, got: () => unknown, reason: string][] = [
  ["the snapshot has none", () => planned({ memory_taken: false }), "the snapshot does not include memory"],
  ["it could not be taken", () => planned({ memory_taken: false, memory_reason: "busy" }), "the snapshot does not include memory: busy"],
  ["it is on another worker", () => planned({ worker_id: "other" }), "the memory of the snapshot is not on the worker that restores it"],
  ["the snapshot is unknown here", () => planned({ snapshot_id: "snap_2" }), "the memory of the snapshot is not on the worker that restores it"],
  ["it is another account's", () => planned({ account_id: "acct_2" }), "the memory of the snapshot is not on the worker that restores it"],
  [
    "the image is of no use",
    () => planned({}, snapshot, { ...able, startRefusal: () => "the machine has another kernel now" }),
    "the machine has another kernel now",
  ],
  ["env_vars are others", () => planned({ env_vars: { A: "2" } }), "processes cannot continue with other env_vars"],
  ["the image is another", () => planned({ image: "default" }), "processes cannot continue on another image"],
];
for (const [what, got, reason] of without) {
  test(`it starts without, and says why, when ${what}`, () => assert.deepEqual(got(), { memory_restored: false, memory_reason: reason }));
}

/** As a worker archives one that can leave it. */
const stored = { ...manifest, memory_image: { id: "memory_7", size_bytes: 1, identity: 99 } } as unknown as SnapshotEntry["manifest"];

test("the memory of another worker, or one that is gone here, is fetched from the archive where it can be", () => {
  const gone = { ...able, startRefusal: () => "it is gone" };
  for (const made of [planned({ worker_id: "other", manifest: stored }), planned({ manifest: stored }, snapshot, gone)]) {
    assert.equal(made.memory_restored, true);
    assert.deepEqual([made.memory_from?.from?.layer, made.memory_from?.from?.identity], ["memory_7", 99]);
    assert.notEqual(made.memory_from?.image, 7);
  }
  assert.deepEqual(planned({ manifest: stored }).memory_from, { image: 7, wish: "prefer" });
  const incapable = { ...able, fetchRefusal: "this worker has no helper" };
  const refused = { memory_restored: false, memory_reason: "this worker has no helper" };
  assert.deepEqual(planned({ worker_id: "other", manifest: stored }, snapshot, incapable), refused);
  const moved = { ...snapshot, worker_id: "other", manifest: stored };
  assert.deepEqual(planArrival(incapable, moved), refused);
  assert.equal(planArrival(able, moved).memory_from?.wish, "prefer");
  assert.deepEqual(planArrival(able, { ...moved, memory: false, memory_reason: "busy" }), { memory_restored: false, memory_reason: "busy" });
});

test("nothing is said about memory that nobody wanted, and nothing is made where it is required and cannot be", () => {
  assert.deepEqual(planned({ memory_wish: "skip" }), { memory_restored: false });
  assert.throws(() => planned({ memory_wish: "require", memory_taken: false }), { code: "unprocessable", reason: "memory_unavailable" });
});

test("images are in use by snapshots, also in the making, and by sandboxes until they have started", () => {
  const snapshots = { all: () => [snapshot, { ...snapshot, memory_image: 8, status: "creating" }, { id: "snap_3" }].values() } as unknown as Snapshots;
  const records = [{ memory_from: { image: 9, wish: "prefer" } }, { memory_from: undefined }, {}];
  const sandboxes = { all: () => records.map((record) => ({ record })).values() } as unknown as Sandboxes;
  assert.deepEqual(memoryInUse(snapshots, sandboxes), new Set([7, 8, 9]));
});

test("numbers of images are whole, positive and exact", () => {
  const numbers = Array.from({ length: 1_000 }, newMemoryImage);
  assert.ok(numbers.every((number) => Number.isSafeInteger(number) && number > 0));
  assert.equal(new Set(numbers).size, numbers.length);
});
