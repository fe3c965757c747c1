/** Which worker gets a new sandbox. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ableOf, rankWorkers } from "../../../../gateway/fleet/placement.ts";
import { peers } from "../../../../shared/bus/subjects.ts";
import { stricter } from "../../../../shared/schemas/sandboxes.ts";
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

test("a strong sandbox goes only where it can be one, and is refused where it cannot", () => {
  const [weak, strong] = [worker("weak"), worker("strong", { strong: true })];
  assert.deepEqual(ableOf([weak, strong], "strong"), [strong]);
  assert.deepEqual(ableOf([weak, strong], "standard"), [weak, strong]);
  assert.throws(() => ableOf([weak], "strong"), { code: "unprocessable", reason: "not_supported" });
  assert.deepEqual(ableOf([], "strong"), []);
});

test("the strictest of what a call, an account and the installation ask for holds", () => {
  assert.equal(stricter(undefined, "standard"), "standard");
  assert.equal(stricter("standard", "strong", undefined), "strong");
});

test("a worker is called by its process, or by its id where its version knows nothing else", () => {
  const peer = peers.worker("a", "p");
  assert.deepEqual(rankWorkers([{ ...worker("a", { epoch: 1 }), peer }]), [{ id: "a", peer, name: "a.p" }]);
  assert.deepEqual(rankWorkers([{ ...worker("a"), peer }]), [{ id: "a", peer, name: "a" }]);
});
