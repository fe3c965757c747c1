/** How many containers the pool keeps of what. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Demand, type Kind, roomFor } from "../../../../worker/sandboxes/demand.ts";

const usual: Kind = { cpus: 1, memoryMiB: 1_024, network: "outbound" };
const small: Kind = { ...usual, memoryMiB: 256 };
const offline: Kind = { ...usual, network: "none" };
const bounds = { least: 2, most: 64 };
const minute = 60_000;

/** @param times when each kind was asked for, in milliseconds */
function demand(...asked: readonly (readonly [Kind, readonly number[]])[]): Demand {
  const made = new Demand({ kind: usual, image: "default" });
  const all = asked.flatMap(([kind, times]) => times.map((atMs) => [kind, atMs] as const));
  for (const [kind, atMs] of all.toSorted(([, one], [, other]) => one - other)) made.note(kind, undefined, atMs);
  return made;
}

const every = (ms: number, count: number, fromMs = 0): number[] => Array.from({ length: count }, (_, index) => fromMs + index * ms);

test("nobody has asked for anything: the least of the usual kind", () => {
  assert.deepEqual(demand().wanted(0, bounds), [{ kind: usual, count: 2 }]);
  assert.deepEqual(demand().wanted(0, { least: 0, most: 64 }), []);
});

test("as many as the largest burst took within ten seconds", () => {
  assert.deepEqual(demand([usual, every(1, 30)]).wanted(50, bounds), [{ kind: usual, count: 30 }], "all at once");
  assert.deepEqual(demand([usual, every(1_000, 100)]).wanted(100_000, bounds), [{ kind: usual, count: 10 }], "one each second");
  assert.deepEqual(demand([usual, every(20_000, 20)]).wanted(400_000, bounds), [{ kind: usual, count: 2 }], "now and then");
  assert.deepEqual(demand([usual, [...every(1, 12), ...every(5_000, 20, minute)]]).wanted(3 * minute, bounds), [{ kind: usual, count: 12 }], "before a calm");
});

test("a burst is forgotten after ten minutes", () => {
  const asked = demand([usual, every(1, 30)], [small, every(1, 5)]);
  assert.equal(asked.wanted(9 * minute, bounds)[0]?.count, 30);
  assert.deepEqual(asked.wanted(11 * minute, bounds), [{ kind: usual, count: 2 }]);
});

test("another kind is kept when it was asked for more than once", () => {
  assert.deepEqual(demand([small, [0]], [offline, [0, 1, 2]]).wanted(10, bounds), [
    { kind: offline, count: 3 },
    { kind: usual, count: 2 },
  ]);
  assert.deepEqual(demand([small, [0, 20_000]]).wanted(20_000, bounds), [{ kind: usual, count: 2 }], "but not at the same time");
});

test("where there is not room for all, each kind gets its share", () => {
  const asked = demand([usual, every(1, 60)], [small, every(1, 30)], [offline, every(1, 10)]);
  const shares = asked.wanted(100, { least: 2, most: 20 });
  assert.deepEqual(shares, [
    { kind: usual, count: 12 },
    { kind: small, count: 6 },
    { kind: offline, count: 2 },
  ]);
  assert.deepEqual(asked.wanted(100, { least: 2, most: 0 }), []);
  const odd = asked.wanted(100, { least: 2, most: 7 });
  assert.equal(
    odd.reduce((sum, { count }) => sum + count, 0),
    7,
    JSON.stringify(odd),
  );
});

test("what is forgotten is not kept any more", () => {
  const asked = demand([usual, every(1, 4)], [offline, every(1, 5)]);
  asked.forget(offline);
  assert.deepEqual(asked.wanted(10, bounds), [{ kind: usual, count: 4 }]);
});

test("what is remembered is bounded", () => {
  const many = demand([usual, every(1, 5_000)]);
  assert.equal(many.wanted(5_000, { least: 2, most: 10_000 })[0]?.count, 256);
  const kinds = Array.from({ length: 1_000 }, (_, index): [Kind, number[]] => [{ ...usual, memoryMiB: index + 1 }, [index, index + 1]]);
  assert.equal(demand(...kinds).wanted(1_001, { least: 0, most: 10_000 }).length, 32);
});

test("the pool has a small part of the memory that is free beyond what calls must find", () => {
  const [MiB, GiB] = [1024 ** 2, 1024 ** 3];
  assert.equal(roomFor(0, 1 * GiB, 256 * MiB), 8);
  assert.equal(roomFor(5, 1 * GiB, 256 * MiB), 13, "what it keeps is not free any more");
  assert.equal(roomFor(0, 16 * GiB, 256 * MiB), 248);
  assert.equal(roomFor(3, 400 * MiB, 256 * MiB), 3, "nothing is made, and nothing removed");
});

test("the files are those of the images that were asked for last, but one of several has none", () => {
  const made = new Demand({ kind: usual, image: "default" });
  const images = (kind: Kind, count: number): string[] => made.images(kind, count);
  assert.deepEqual([images(usual, 1), images(usual, 3)], [["default"], ["default", "default"]], "nobody has asked for anything");
  assert.deepEqual(images(small, 2), [], "nothing says which");
  made.note(usual, "python", 0);
  assert.deepEqual([images(usual, 1), images(usual, 3)], [["python"], ["default", "python"]]);
  made.note(usual, undefined, 1);
  assert.deepEqual([images(usual, 1), images(usual, 2), images(usual, 3)], [[], ["python"], ["default", "python"]]);
  for (let atMs = 2; atMs < 5; atMs++) made.note(small, "node", atMs);
  assert.deepEqual(
    [images(small, 3), images(small, 5)],
    [
      ["node", "node"],
      ["node", "node", "node"],
    ],
  );
});

test("of images that may be removed nothing is kept once they are forgotten, but how often they were asked for is", () => {
  const made = new Demand({ kind: usual, image: "default" });
  for (let atMs = 0; atMs < 4; atMs++) made.note(usual, atMs % 2 ? "python" : "default", atMs);
  made.forgetImages();
  assert.deepEqual(made.images(usual, 4), ["default", "default"]);
  assert.deepEqual(made.wanted(10, bounds), [{ kind: usual, count: 4 }]);
});
