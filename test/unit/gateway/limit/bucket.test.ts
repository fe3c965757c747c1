/** The token bucket alone, with a clock that the tests set. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { TokenBucket } from "../../../../gateway/limit/bucket.ts";
import type { Policy } from "../../../../shared/bus/contract/gateways.ts";

const windowMs = 60_000;
const policyOf = (limit: number, burst = limit): Policy => ({ limit, burst, windowMs });

function takeAll(bucket: TokenBucket, policy: Policy, nowMs: number): number {
  let count = 0;
  while (bucket.take(policy, 1, nowMs) === 1) count++;
  return count;
}

test("a new bucket gives its limit at once and then nothing", () => {
  const bucket = new TokenBucket();
  assert.equal(bucket.take(policyOf(10), 4, 0), 4);
  assert.deepEqual(bucket.level(policyOf(10), 0), { remaining: 6, nextMs: windowMs });
  assert.equal(bucket.take(policyOf(10), 10, 0), 6);
  assert.equal(bucket.take(policyOf(10), 1, 0), 0);
});

test("each token comes back a whole window after it was spent", () => {
  const bucket = new TokenBucket();
  const policy = policyOf(3);
  for (const at of [0, 10_000, 25_000]) assert.equal(bucket.take(policy, 1, at), 1);
  for (const [before, at] of [
    [59_999, 60_000],
    [69_999, 70_000],
    [84_999, 85_000],
  ] as const) {
    assert.equal(bucket.take(policy, 1, before), 0);
    assert.equal(bucket.take(policy, 1, at), 1);
    assert.equal(bucket.take(policy, 1, at), 0);
  }
});

test("tokens spent within 20 ms come back together, with the last of them", () => {
  const bucket = new TokenBucket();
  const policy = policyOf(3);
  for (const at of [0, 19, 20]) bucket.take(policy, 1, at);
  assert.equal(bucket.take(policy, 3, 60_018), 0);
  assert.equal(bucket.take(policy, 3, 60_019), 2);
  assert.equal(bucket.take(policy, 3, 60_020), 1);
});

test("a full bucket says so and has nothing to wait for", () => {
  const bucket = new TokenBucket();
  assert.ok(bucket.isFull(0));
  assert.deepEqual(bucket.level(policyOf(5), 0), { remaining: 5, nextMs: 0 });
  bucket.take(policyOf(5), 1, 0);
  assert.ok(!bucket.isFull(windowMs - 1));
  assert.ok(bucket.isFull(windowMs));
});

test("a limit that was lowered counts what was spent before; a raised one gives the difference", () => {
  const bucket = new TokenBucket();
  bucket.take(policyOf(10), 5, 0);
  bucket.take(policyOf(10), 5, 1_000);
  assert.deepEqual(bucket.level(policyOf(4), 2_000), { remaining: 0, nextMs: 59_000 });
  assert.equal(bucket.take(policyOf(4), 1, 60_999), 0);
  assert.equal(takeAll(bucket, policyOf(4), 61_000), 4);
  assert.equal(takeAll(bucket, policyOf(9), 61_000), 5);
});

test("a smaller burst is refilled evenly and never lets more than the limit through", () => {
  const bucket = new TokenBucket();
  const policy = policyOf(60, 5);
  assert.equal(takeAll(bucket, policy, 0), 5);
  assert.deepEqual(bucket.level(policy, 0), { remaining: 0, nextMs: 1_000 });
  assert.equal(takeAll(bucket, policy, 999), 0);
  let count = 5;
  for (let at = 1_000; at < windowMs; at += 1_000) count += takeAll(bucket, policy, at);
  assert.equal(count, 60);
  assert.equal(takeAll(bucket, policy, windowMs - 1), 0);
  assert.equal(takeAll(bucket, policy, 10 * windowMs), 5);
});

test("prepaid tokens count until a window after the time in which they may be used", () => {
  const bucket = new TokenBucket();
  const policy = policyOf(10);
  bucket.prepay(policy, 4, 0, 500);
  assert.equal(takeAll(bucket, policy, 10), 6);
  assert.equal(takeAll(bucket, policy, windowMs + 9), 0);
  // Spent later than the prepayment, and yet back earlier.
  assert.equal(takeAll(bucket, policy, windowMs + 10), 6);
  assert.equal(takeAll(bucket, policy, windowMs + 499), 0);
  assert.equal(takeAll(bucket, policy, windowMs + 500), 4);
});

test("unused prepaid tokens can be given back once, and only they", () => {
  const bucket = new TokenBucket();
  const policy = policyOf(10);
  const first = bucket.prepay(policy, 3, 0, 500);
  const second = bucket.prepay(policy, 3, 100, 500);
  assert.equal(takeAll(bucket, policy, 200), 4);
  bucket.giveBack(2, first);
  assert.equal(takeAll(bucket, policy, 300), 2);
  bucket.giveBack(3, first);
  assert.equal(takeAll(bucket, policy, 300), 1);
  bucket.giveBack(5, second + 1);
  assert.equal(takeAll(bucket, policy, 300), 0);
  bucket.giveBack(3, second);
  assert.equal(takeAll(bucket, policy, 300), 3);
});

test("a call that was counted and not carried out gives its own token back, not one that is prepaid", () => {
  const bucket = new TokenBucket();
  const policy = policyOf(4, 4);
  const prepayment = bucket.prepay(policy, 2, 0, 500);
  assert.equal(bucket.take(policy, 2, 1), 2);
  bucket.giveBack(1);
  bucket.giveBack(2, prepayment);
  assert.equal(takeAll(bucket, policy, 2), 3);
});

test("what comes back too late changes nothing", () => {
  const bucket = new TokenBucket();
  const policy = policyOf(5);
  const prepayment = bucket.prepay(policy, 2, 0, 500);
  assert.equal(bucket.take(policy, 5, windowMs + 500), 5);
  bucket.giveBack(2, prepayment);
  assert.equal(takeAll(bucket, policy, windowMs + 500), 0);
});

test("another process goes on where the first one stopped, on a clock of its own", () => {
  const [former, next] = [new TokenBucket(), new TokenBucket()];
  const policy = policyOf(10);
  former.take(policy, 4, 1_000);
  former.take(policy, 3, 11_000);
  assert.equal(next.take(policy, 1, 500_000), 1);
  next.import(former.export(21_000), 500_000);
  assert.deepEqual(next.level(policy, 500_000), { remaining: 2, nextMs: 40_000 });
  assert.equal(takeAll(next, policy, 500_000), 2);
  assert.equal(takeAll(next, policy, 540_000), 4);
  assert.equal(takeAll(next, policy, 550_000), 3);
  assert.equal(takeAll(next, policy, 560_000), 3);
});

test("unused prepaid tokens can be given back to the process that went on", () => {
  const [former, next] = [new TokenBucket(), new TokenBucket()];
  const policy = policyOf(10);
  const prepayment = former.prepay(policy, 4, 0, 500);
  former.take(policy, 6, 0);
  next.import(former.export(100), 7_000);
  assert.equal(takeAll(next, policy, 7_000), 0);
  next.giveBack(3, prepayment);
  assert.equal(takeAll(next, policy, 7_000), 3);
});

test("another process goes on with a burst that is used up", () => {
  const [former, next] = [new TokenBucket(), new TokenBucket()];
  const policy = policyOf(60, 5);
  assert.equal(takeAll(former, policy, 0), 5);
  next.import(former.export(2_000), 900_000, former.exportBurst(2_000));
  assert.equal(takeAll(next, policy, 900_000), 2);
  assert.equal(former.export(windowMs).length, 0);
});
