/** Calls at random gateways for several windows: how many of them any window sees. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { leaseMs } from "../../../../gateway/limit/rates.ts";
import { contract } from "../../../../shared/bus/contract/contract.ts";
import { atEnd, fixture } from "../../../helpers/fixture.ts";
import { acquainted, TestGateway } from "../../../helpers/gateways.ts";
import { startNats } from "../../../helpers/nats.ts";
import { seededRandom } from "../../../helpers/random.ts";

interface Admitted {
  readonly askedMs: number;
  readonly answeredMs: number;
}

const windowMs = 2_000;
const windows = 3;
/** How long a gateway waits for the owner of a key. */
const ownerMs = contract.take.timeoutMs;
/** Tokens spent within this time come back together. */
const mergeMs = 20;

const nats = await fixture(startNats());
const gateways = [await TestGateway.open(nats), await TestGateway.open(nats), await TestGateway.open(nats)];
for (const gateway of gateways) gateway.join();
await acquainted(gateways);
atEnd(() => gateways.forEach((gateway) => void gateway.leave()));

/** A client that asks one random gateway after another without a pause. Returns what was admitted, and when it asked and ended. */
async function askOn(key: string, limit: number, seed: number, untilMs: number): Promise<{ admitted: Admitted[]; asked: number[] }> {
  const random = seededRandom(seed);
  const [admitted, asked]: [Admitted[], number[]] = [[], []];
  const policy = { limit, burst: limit, windowMs };
  while (performance.now() < untilMs) {
    const askedMs = performance.now();
    asked.push(askedMs);
    const verdict = await gateways[Math.floor(random() * gateways.length)]?.rates.take(key, policy);
    if (verdict?.granted) admitted.push({ askedMs, answeredMs: performance.now() });
    else await sleep(random() * 4);
  }
  asked.push(performance.now());
  return { admitted, asked };
}

for (const [limit, clients] of [
  [10, 2],
  [100, 4],
  // No more than a machine that is busy with other things lets four clients ask for in much less than a window.
  [200, 4],
] as const) {
  test(`${clients} clients that ask random gateways get ${limit} calls in any window, not more and not less`, async () => {
    const startMs = performance.now();
    const untilMs = startMs + windows * windowMs;
    const runs = await Promise.all(Array.from({ length: clients }, (_, index) => askOn(`key_${limit}`, limit, limit + index, untilMs)));
    const admitted = runs.flatMap((run) => run.admitted).sort((a, b) => a.answeredMs - b.answeredMs);
    const pauseMs = Math.max(...runs.flatMap(({ asked }) => asked.map((at, index) => at - (asked[index - 1] ?? at))));
    // When the machine stands still for so long that an owner's answer comes too late, the other gateways admit their shares beside it.
    const most = pauseMs < ownerMs ? limit : limit + (gateways.length - 1) * Math.ceil(limit / gateways.length);
    // A call is decided between its question and its answer, so those that lie in a window whole were decided in it.
    for (const { answeredMs } of admitted) {
      const inside = admitted.filter((other) => other.answeredMs <= answeredMs && other.askedMs > answeredMs - windowMs);
      assert.ok(inside.length <= most, `${inside.length} in the window before ${answeredMs - startMs}`);
    }
    // A token may lie in the lease of a gateway that is not asked, and counts as spent at the lease's end. A client
    // that the machine keeps from asking for some time gets its call that much later.
    const lengthMs = windowMs + leaseMs + mergeMs + 2 * pauseMs;
    for (let fromMs = startMs; fromMs + lengthMs < untilMs; fromMs += 50) {
      const inside = admitted.filter(({ answeredMs }) => answeredMs >= fromMs && answeredMs <= fromMs + lengthMs);
      assert.ok(inside.length >= limit, `only ${inside.length} in ${lengthMs} ms from ${fromMs - startMs}`);
    }
    assert.ok(admitted.length > 2 * limit);
  });
}
