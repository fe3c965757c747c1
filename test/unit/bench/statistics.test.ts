/** What may be said of measurements that vary by chance. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Block, failuresMore, percentile, percentilesOf, ratioOf } from "../../../bench/statistics.ts";
import { seededRandom } from "../../helpers/random.ts";

const sure = { share: 0.5, confidence: 0.99, isPaired: false };

/** Blocks of values around 100, each block shifted by noise of its own, as neighbours on a machine shift it. */
function noisy(factor: number, seed: number, noise = 10): [Block[]] {
  const random = seededRandom(seed);
  const blocks = Array.from({ length: 20 }, () => {
    const shift = noise * random();
    return Array.from({ length: 30 }, () => [Math.round((100 + shift + 20 * random()) * factor), 1] as const);
  });
  return [blocks];
}

test("percentiles are values that were measured (nearest rank)", () => {
  const values = [5, 1, 4, 2, 3];
  assert.deepEqual(
    [0.01, 0.2, 0.5, 0.99, 1].map((share) => percentile(values, share)),
    [1, 1, 3, 5, 5],
  );
  assert.deepEqual(percentilesOf(Array.from({ length: 100 }, (_, index) => index + 1)), { p50: 50, p95: 95, p99: 99 });
  assert.ok(Number.isNaN(percentile([], 0.5)));
});

test("a ratio lies in its range, which leaves out no change where there is one", () => {
  const found = ratioOf(noisy(1, 1), noisy(1.5, 2), sure);
  assert.ok(found && found.low > 1.3 && found.high < 1.7 && found.low <= found.value && found.value <= found.high, JSON.stringify(found));
  const lower = ratioOf(noisy(1.5, 3), noisy(1, 4), sure);
  assert.ok(lower && lower.high < 1);
});

test("of forty pairs without a difference, hardly any seem to differ", () => {
  const wrong = Array.from({ length: 40 }, (_, index) => ratioOf(noisy(1, 2 * index + 1), noisy(1, 2 * index + 2), sure)).filter(
    (found) => !found || found.low > 1 || found.high < 1,
  );
  assert.ok(wrong.length <= 3, `${wrong.length} of 40`);
});

test("blocks are drawn as a whole: noise that moves whole blocks makes the range wide", () => {
  const spread = (noise: number): number => {
    const found = ratioOf(noisy(1, 5, noise), noisy(1, 6, noise), sure);
    assert.ok(found);
    return found.high - found.low;
  };
  assert.ok(spread(200) > 3 * spread(0));
});

test("pairs take out the noise that both share", () => {
  const [base, other] = [noisy(1, 7, 200), noisy(1.2, 7, 200)];
  const width = (isPaired: boolean): number => {
    const found = ratioOf(base, other, { ...sure, isPaired });
    assert.ok(found);
    return found.high - found.low;
  };
  assert.ok(width(true) < width(false) / 3);
});

test("the same measurements get the same answer each time", () => {
  assert.deepEqual(ratioOf(noisy(1, 1), noisy(1.1, 2), sure), ratioOf(noisy(1, 1), noisy(1.1, 2), sure));
});

test("too few blocks say nothing", () => {
  const few = noisy(1, 1)[0].slice(0, 4);
  assert.equal(ratioOf([few], noisy(1, 2), sure), undefined);
  assert.equal(ratioOf([[...few, [], [], []]], noisy(1, 2), sure), undefined);
  assert.equal(failuresMore([[{ count: 10, failures: 1 }]], [[]], 0.99), undefined);
});

test("failures differ if their share does in all parts, not if it does in one", () => {
  const calm = Array.from({ length: 20 }, () => ({ count: 50, failures: 0 }));
  const bad = calm.map((block) => ({ ...block, failures: 5 }));
  const once = calm.map((block, index) => (index === 3 ? { ...block, failures: 5 } : block));
  const [more, disturbed] = [failuresMore([calm], [bad], 0.99), failuresMore([calm], [once], 0.99)];
  assert.ok(more && more.low > 0.05 && Math.abs(more.value - 0.1) < 1e-9);
  assert.ok(disturbed && disturbed.low <= 0 && disturbed.high > 0);
});

test("runs that differ from each other make the range wider than their intervals would", () => {
  const run = (factor: number, seed: number): Block[] => noisy(factor, seed)[0];
  const base = [run(1, 1), run(1.3, 2), run(0.8, 3)];
  const other = [run(1.1, 4), run(1.4, 5), run(0.9, 6)];
  const [apart, together] = [ratioOf(base, other, sure), ratioOf([base.flat()], [other.flat()], sure)];
  assert.ok(apart && together && apart.low < 1 && apart.high > 1);
  assert.ok(apart.high - apart.low > 1.3 * (together.high - together.low), `${JSON.stringify(apart)} ${JSON.stringify(together)}`);
});
