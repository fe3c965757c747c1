/** Request rates counted by several gateways over a real nats-server. */
import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { ask, askWithin } from "../../../../shared/bus/calls.ts";
import type { Policy } from "../../../../shared/bus/contract/gateways.ts";
import { callSubject } from "../../../../shared/bus/subjects.ts";
import { acquainted, keyOf, TestGateway } from "../../../helpers/gateways.ts";
import { startNats, type TestNats } from "../../../helpers/nats.ts";
import { until } from "../../../helpers/until.ts";

let nats: TestNats;
let gateways: [TestGateway, TestGateway, TestGateway];

beforeEach(async () => {
  nats = await startNats();
  gateways = [await TestGateway.open(nats), await TestGateway.open(nats), await TestGateway.open(nats)];
});
afterEach(async () => {
  for (const { peers, reservations } of gateways) {
    peers.leave();
    reservations.stop();
  }
  await nats?.[Symbol.asyncDispose]();
});

async function joinAll(): Promise<void> {
  for (const gateway of gateways) gateway.join();
  await acquainted(gateways);
}

/** Long enough that nothing comes back during a test. */
const policyOf = (limit: number, burst = limit): Policy => ({ limit, burst, windowMs: 600_000 });

/** How many of `count` simultaneous calls are let through. */
async function takes(gateway: TestGateway, key: string, policy: Policy, count: number): Promise<number> {
  const verdicts = await Promise.all(Array.from({ length: count }, async () => gateway.rates.take(key, policy)));
  return verdicts.filter(({ granted }) => granted).length;
}

test("of simultaneous calls through all gateways exactly the limit is let through", async () => {
  await joinAll();
  for (let number = 0; number < 10; number++) {
    const granted = await Promise.all(gateways.map((gateway) => takes(gateway, `key_${number}`, policyOf(20), 20)));
    assert.equal(
      granted.reduce((sum, count) => sum + count),
      20,
    );
  }
});

test("two keys have limits of their own", async () => {
  await joinAll();
  for (const key of ["one", "two"]) assert.equal(await takes(gateways[0], key, policyOf(5), 8), 5);
});

test("what is left can be asked of every gateway and costs nothing", async () => {
  await joinAll();
  const key = keyOf(gateways);
  assert.equal(await takes(gateways[0], key, policyOf(10), 4), 4);
  for (const { rates } of [...gateways, ...gateways]) {
    const { remaining, nextMs } = await rates.level(key, policyOf(10));
    assert.equal(remaining, 6);
    assert.ok(nextMs > 500_000 && nextMs <= 600_000);
  }
});

test("a token given back through another gateway can be spent again", async () => {
  await joinAll();
  const key = keyOf(gateways);
  assert.equal(await takes(gateways[1], key, policyOf(3), 4), 3);
  await gateways[2].rates.giveBack(key);
  await until("the token", async () => (await gateways[0].rates.level(key, policyOf(3))).remaining === 1);
  assert.equal(await takes(gateways[1], key, policyOf(3), 2), 1);
});

test("a busy gateway answers from tokens that it got in advance, and what it does not use goes back", async () => {
  await joinAll();
  const key = keyOf(gateways);
  const [owner, other] = gateways;
  assert.equal((await other.rates.take(key, policyOf(2_400))).remaining, 2_399);
  for (const remaining of [2_398, 2_397]) {
    const verdict = other.rates.take(key, policyOf(2_400));
    assert.ok(!(verdict instanceof Promise) && verdict.granted);
    assert.equal(verdict.remaining, remaining);
  }
  assert.ok((await owner.rates.level(key, policyOf(2_400))).remaining < 2_397, "the owner keeps them for the other one");
  await until("the rest", async () => (await owner.rates.level(key, policyOf(2_400))).remaining === 2_397);
  assert.ok(other.rates.take(key, policyOf(2_400)) instanceof Promise, "used up or given back, they cannot be used again");
});

test("a gateway that joins as the owner goes on with what was counted before", async () => {
  const [newcomer, former, other] = gateways;
  former.join();
  other.join();
  await acquainted([former, other]);
  const key = keyOf(gateways);
  assert.equal(await takes(other, key, policyOf(20, 10), 7), 7);
  newcomer.join();
  await acquainted(gateways);
  const granted = await Promise.all(gateways.map((gateway) => takes(gateway, key, policyOf(20, 10), 10)));
  assert.equal(
    granted.reduce((sum, count) => sum + count),
    3,
    "the burst is counted on, not begun anew",
  );
});

test("calls that come while a gateway joins are counted exactly", async () => {
  const [newcomer, former, other] = gateways;
  former.join();
  other.join();
  await acquainted([former, other]);
  const key = keyOf(gateways);
  let granted = 0;
  let joined = false;
  const ask = async (gateway: TestGateway): Promise<void> => {
    for (let tries = 0; tries < 150 || !joined; tries++) {
      const verdict = await gateway.rates.take(key, policyOf(100));
      if (verdict.granted) granted++;
      await new Promise((resolve) => setTimeout(resolve, 4));
    }
  };
  const asking = [ask(former), ask(other)];
  newcomer.join();
  await acquainted(gateways);
  joined = true;
  await Promise.all([...asking, ask(newcomer)]);
  await until("the last leases", async () => {
    granted += await takes(newcomer, key, policyOf(100), 1);
    return granted >= 100;
  });
  assert.equal(granted, 100);
  assert.equal(await takes(other, key, policyOf(100), 5), 0);
});

test("what another gateway says too late that it has counted is counted from then on", async () => {
  const [owner, slow] = gateways;
  owner.join();
  slow.join({ deaf: true });
  slow.bus.serve(callSubject("takeover", slow.id), async () => {
    await sleep(1_500);
    return { spent: [[500_000, 7, 0]], pending: [] };
  });
  await acquainted([owner, slow]);
  const key = keyOf([owner, slow]);
  assert.equal(await takes(owner, key, policyOf(10), 2), 2);
  await until("what is left", async () => (await owner.rates.level(key, policyOf(10))).remaining === 1);
});

test("an owner that leaves hands over what it counted", async () => {
  await joinAll();
  const [owner, next, other] = gateways;
  const key = keyOf(gateways);
  assert.equal(await takes(owner, key, policyOf(20), 12), 12);
  owner.leave();
  await acquainted([next, other]);
  assert.equal(await takes(other, key, policyOf(20), 20), 8);
});

test("a gateway that counted alone tells the owner once they know each other", async () => {
  const [owner, lonely] = gateways;
  owner.join();
  const key = keyOf(gateways.slice(0, 2));
  assert.equal(await takes(owner, key, policyOf(20), 3), 3);
  assert.equal(await takes(lonely, key, policyOf(20), 9), 9);
  lonely.join();
  await acquainted([owner, lonely]);
  await until("the sum", async () => (await owner.rates.level(key, policyOf(20))).remaining === 8);
});

test("whoever asks the wrong gateway is told the right one, and the counts stay where they are", async () => {
  await joinAll();
  const [owner, wrong, asking] = gateways;
  const key = keyOf(gateways);
  assert.equal(await takes(owner, key, policyOf(10), 4), 4);
  const { bus } = asking;
  assert.deepEqual(await ask(bus, "take", wrong.id, { key, want: 1, policy: policyOf(10), by: asking.id }), { moved_to: owner.id });
  assert.deepEqual(await askWithin(bus, "reserve", wrong.id, { key, id: "r", peer: asking.id, limit: 1 }, 5_000), { moved_to: owner.id });
  await ask(bus, "settle", wrong.id, { key, id: "r" });
  assert.equal(wrong.ownership.find(key), undefined);
  assert.equal((await owner.rates.level(key, policyOf(10))).remaining, 6);
});

test("without an answer of the owner every other gateway lets its share through, and the next owner counts that", async () => {
  const [owner, next, other] = gateways;
  owner.join({ deaf: true });
  next.join();
  other.join();
  await acquainted(gateways);
  const key = keyOf(gateways);
  for (const gateway of [next, other]) assert.equal(await takes(gateway, key, policyOf(28), 20), 10);
  await owner.die();
  await acquainted([next, other]);
  assert.equal(await takes(other, key, policyOf(28), 20), 8);
  assert.equal(await takes(next, key, policyOf(28), 5), 0);
});

test("an owner that answers again hears of the shares that were let through meanwhile", async () => {
  const [owner, next, other] = gateways;
  owner.join({ deaf: true });
  next.join();
  other.join();
  await acquainted(gateways);
  const key = keyOf(gateways);
  for (const gateway of [next, other]) assert.equal(await takes(gateway, key, policyOf(30), 12), 10);
  await owner.hear();
  for (const { rates } of [next, other, owner]) {
    await until("what is left", async () => (await rates.level(key, policyOf(30))).remaining === 10);
  }
  assert.equal(await takes(other, key, policyOf(30), 20), 10);
});

test("an owner that dies lets at most one more burst through", async () => {
  await joinAll();
  const [owner, next, other] = gateways;
  const key = keyOf(gateways);
  assert.equal(await takes(other, key, policyOf(24), 30), 24);
  await owner.die();
  let more = 0;
  const gone = acquainted([next, other]).then(() => true);
  while (!(await Promise.race([gone, new Promise((resolve) => setTimeout(resolve, 100, false))]))) {
    for (const gateway of [next, other]) more += await takes(gateway, key, policyOf(24), 5);
  }
  for (const gateway of [next, other]) more += await takes(gateway, key, policyOf(24), 30);
  assert.equal(more, 24);
});
