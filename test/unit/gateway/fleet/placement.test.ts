/** Which worker gets a new sandbox. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ableOf, imageWanted, Placements, rankWorkers, refOf } from "../../../../gateway/fleet/placement.ts";
import { peers } from "../../../../shared/bus/subjects.ts";
import { stricter } from "../../../../shared/schemas/sandboxes.ts";
import { keyOfName } from "../../../../shared/util/image.ts";
import { GiB, presentWorker as worker } from "../../../helpers/present-worker.ts";

const any = { memoryBytes: 0, image: undefined, seed: "" };
const ranked = (...workers: ReturnType<typeof worker>[]): string[] => rankWorkers(workers, any).map(({ worker: { id } }) => id);

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

test("a worker without disk space comes last, however much memory it has", () => {
  const full = worker("full", { disk_full: true, memory_free_bytes: 64 * GiB });
  const [small, big] = [worker("small", { memory_free_bytes: GiB }), worker("big")];
  const ids = rankWorkers([full, small, big], { ...any, memoryBytes: 2 * GiB }).map(({ worker: { id } }) => id);
  assert.deepEqual(ids, ["big", "small", "full"]);
  assert.deepEqual(ranked(full), ["full"], "alone, it says itself why it refuses");
});

test("a worker without enough memory for a sandbox comes after those that have it", () => {
  const [small, busy] = [worker("small", { memory_free_bytes: GiB }), worker("busy", { sandboxes: 40 })];
  const first = (memoryBytes: number): string | undefined => rankWorkers([small, busy], { ...any, memoryBytes })[0]?.worker.id;
  assert.equal(first(GiB), "small");
  assert.equal(first(2 * GiB), "busy");
});

const offered = { defaultImage: "localhost/sandgate/default:latest", localImages: ["localhost/tools:1"] };
const firstFor = (image: string, ...workers: ReturnType<typeof worker>[]): string | undefined =>
  rankWorkers(workers, { ...any, image: imageWanted(image, offered) })[0]?.worker.id;

test("a sandbox goes where its image is, unless others have far more room", () => {
  const images = [keyOfName("docker.io/library/alpine:latest")];
  assert.equal(firstFor("alpine", worker("has", { images, sandboxes: 3 }), worker("empty")), "has");
  assert.equal(firstFor("alpine", worker("full", { images, sandboxes: 30 }), worker("empty")), "empty");
  assert.equal(firstFor("debian", worker("other", { images, sandboxes: 3 }), worker("empty")), "empty");
  assert.equal(firstFor("default", worker("other", { images, sandboxes: 3 }), worker("empty")), "empty", "every worker has the default image");
});

test("a local image cannot be pulled elsewhere, so however full its worker is, it gets the sandbox", () => {
  const images = [keyOfName("localhost/tools:1")];
  assert.equal(firstFor("localhost/tools:1", worker("full", { images, sandboxes: 300 }), worker("empty")), "full");
});

test("sandboxes wanted between two heartbeats are spread", () => {
  const [placements, workers] = [new Placements(), [worker("a"), worker("b"), worker("c")]];
  const counts = new Map<string, number>();
  for (let index = 0; index < 30; index++) {
    const wanted = { ...any, memoryBytes: GiB / 16, seed: `rsv_${index}` };
    const [first] = rankWorkers(workers, wanted, placements);
    assert.ok(first);
    placements.note(first.worker, wanted);
    counts.set(first.worker.id, (counts.get(first.worker.id) ?? 0) + 1);
  }
  assert.deepEqual([...counts.values()].sort(), [10, 10, 10]);
});

test("gateways that have heard the same do not all choose the same of equal workers", () => {
  const workers = [worker("a"), worker("b"), worker("c")];
  const firsts = Array.from({ length: 50 }, (_, index) => rankWorkers(workers, { ...any, seed: `rsv_${index}` })[0]?.worker.id);
  assert.deepEqual([...new Set(firsts)].sort(), ["a", "b", "c"]);
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
  assert.deepEqual([{ ...worker("a", { epoch: 1 }), peer }].map(refOf), [{ id: "a", peer, name: "a.p" }]);
  assert.deepEqual([{ ...worker("a"), peer }].map(refOf), [{ id: "a", peer, name: "a" }]);
});
