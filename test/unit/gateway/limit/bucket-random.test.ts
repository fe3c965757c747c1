/** The token bucket at random times, beside a plain log of what was spent. The clock and the chance are the test's. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { TokenBucket } from "../../../../gateway/limit/bucket.ts";
import type { Policy } from "../../../../shared/bus/contract/gateways.ts";
import { seededRandom } from "../../../helpers/random.ts";

/** Tokens that are spent within this time come back with the last of them. */
const mergeMs = 20;
const windowMs = 60_000;
const policyOf = (limit: number, burst = limit): Policy => ({ limit, burst, windowMs });

/** How many of the times lie in the window that ends with `endMs`. */
const within = (times: readonly number[], endMs: number, lengthMs = windowMs): number => times.filter((at) => at > endMs - lengthMs && at <= endMs).length;

for (const [limit, meanMs] of [
  [1, 20_000],
  [7, 3_000],
  [60, 300],
  [60, 5],
  [400, 40],
] as const) {
  test(`at random times (limit ${limit}, one try every ${meanMs} ms) no window sees more than the limit, and nothing else is refused`, () => {
    const random = seededRandom(limit * 1_000 + meanMs);
    const policy = policyOf(limit);
    const bucket = new TokenBucket();
    const granted: number[] = [];
    let refused = 0;
    for (let step = 0, now = 0; step < 15_000; step++, now += random() * 2 * meanMs) {
      if (bucket.take(policy, 1, now) === 1) {
        granted.push(now);
        assert.ok(within(granted.slice(-limit - 1), now) <= limit, `more than ${limit} in the minute before ${now}`);
      } else {
        refused++;
        assert.ok(within(granted.slice(-limit), now, windowMs + mergeMs) >= limit, `refused at ${now} without need`);
      }
    }
    assert.ok(granted.length > limit && refused > 0);
  });
}

for (const burst of [20, 5]) {
  test(`whoever waits as long as a refusal says is let in, and not before (burst ${burst} of 20)`, () => {
    const random = seededRandom(burst);
    const policy = policyOf(20, burst);
    const bucket = new TokenBucket();
    let refused = 0;
    for (let step = 0, now = 0; step < 4_000; step++, now += random() * 2_000) {
      if (random() < 0.05) bucket.prepay(policy, bucket.level(policy, now).remaining >> 2, now, 500);
      if (bucket.take(policy, 1, now) === 1) continue;
      refused++;
      const { remaining, nextMs } = bucket.level(policy, now);
      assert.equal(remaining, 0);
      if (nextMs > 2) assert.equal(bucket.take(policy, 1, now + nextMs - 1), 0, "it said later than it could");
      now += nextMs;
      assert.equal(bucket.take(policy, 1, now), 1, `too early after ${nextMs} ms`);
    }
    assert.ok(refused > 100);
  });
}

test("at random times a smaller burst is the most at once, and in any time not more than was refilled in it", () => {
  const random = seededRandom(5);
  const policy = policyOf(60, 6);
  const bucket = new TokenBucket();
  const granted: number[] = [];
  for (let step = 0, now = 0; step < 5_000; step++, now += random() < 0.1 ? random() * 20_000 : random() * 50) {
    if (bucket.take(policy, 1, now) === 1) granted.push(now);
  }
  for (const [index, to] of granted.entries()) {
    for (let from = Math.max(0, index - 90); from <= index; from++) {
      const lengthMs = to - (granted[from] as number);
      const count = index - from + 1;
      assert.ok(count <= policy.burst + (lengthMs * policy.limit) / windowMs + 1e-3, `${count} in ${lengthMs} ms`);
      if (lengthMs < windowMs) assert.ok(count <= policy.limit);
    }
  }
  assert.ok(granted.length > 500);
});

test("at random times with prepayments, returns and moves to other processes, no window sees more than the limit", () => {
  const random = seededRandom(77);
  const policy = policyOf(30);
  let bucket = new TokenBucket();
  const used: number[] = [];
  const prepaid: { name: number; left: number; untilMs: number }[] = [];
  for (let step = 0, now = 0; step < 20_000; step++, now += random() * 200) {
    for (const lease of prepaid.filter(({ untilMs }) => untilMs <= now)) bucket.giveBack(lease.left, lease.name);
    prepaid.splice(0, prepaid.length, ...prepaid.filter(({ untilMs }) => untilMs > now));
    const { remaining } = bucket.level(policy, now);
    const lease = prepaid.find(({ left }) => left > 0);
    if (lease && random() < 0.5) {
      lease.left--;
      used.push(now);
    } else if (remaining > 4 && random() < 0.3) {
      prepaid.push({ name: bucket.prepay(policy, 4, now, 500), left: 4, untilMs: now + 500 });
    } else if (bucket.take(policy, 1, now) === 1) {
      used.push(now);
    }
    if (random() < 0.001) {
      const next = new TokenBucket();
      next.import(bucket.export(now), now);
      bucket = next;
    }
    assert.ok(within(used.slice(-policy.limit - 1), now) <= policy.limit, `more than the limit before ${now}`);
  }
  assert.ok(used.length > 10 * policy.limit);
});
