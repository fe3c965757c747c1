/** When arrivals are due, and what counts as done in time. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { findLimit, stepOf } from "../../../bench/load/limit.ts";
import { Recorder } from "../../../bench/load/recorder.ts";
import { achievedPerS, atRate, ofPhase } from "../../../bench/load/schedule.ts";

test("at a rate, arrivals are evenly spread over the whole time", () => {
  const { arrivalsMs, windowMs, rate } = atRate(4, 2_000);
  assert.deepEqual([arrivalsMs, windowMs, rate], [[0, 250, 500, 750, 1_000, 1_250, 1_500, 1_750], 2_000, 4]);
  assert.equal(atRate(1_000, 60_000).arrivalsMs.length, 60_000);
  assert.deepEqual(atRate(0.1, 1_000).arrivalsMs, [0], "never nothing");
});

test("phases come in sequence, staggered or at once, and nothing of them is dropped", () => {
  assert.deepEqual(ofPhase({ name: "a", count: 3 }), { name: "a", arrivalsMs: [undefined, undefined, undefined] });
  assert.deepEqual(ofPhase({ name: "b", count: 3, everyMs: 200 }).arrivalsMs, [0, 200, 400]);
  assert.deepEqual(ofPhase({ name: "c", count: 3, everyMs: 0 }).arrivalsMs, [0, 0, 0]);
});

test("a deployment that keeps up reaches the rate, however long each action takes", () => {
  const schedule = atRate(10, 10_000);
  const endsAfter = (ms: number): number[] => schedule.arrivalsMs.map((at) => (at ?? 0) + ms);
  for (const ms of [1, 500, 2_000]) assert.ok(Math.abs(achievedPerS(schedule, endsAfter(ms)) - 10) < 0.5, `${ms} ms`);
  const halved = schedule.arrivalsMs.map((at) => 2 * (at ?? 0));
  assert.ok(Math.abs(achievedPerS(schedule, halved) - 5) < 0.5);
  assert.equal(achievedPerS(schedule, []), 0);
  assert.equal(achievedPerS(ofPhase({ name: "a", count: 4 }), [500, 1_000, 1_500, 2_000]), 2);
});

/** What a step has shown: actions of these milliseconds, and failures. */
function shown(latenciesMs: readonly number[], failures = 0): Recorder {
  const recorder = new Recorder();
  const arrival = { row: "a", interval: 0, dueMs: 0 };
  for (const ms of latenciesMs) recorder.done({ ...arrival, dueMs: performance.now() - ms }, 0);
  for (let left = failures; left > 0; left--) recorder.failed(arrival, new Error("no"));
  return recorder;
}

test("a rate bends for its latency, its failures, what was not done or not sent, and says which", () => {
  const sending = {
    name: "10/s",
    rate: 10,
    durationS: 10,
    scheduled: 100,
    sent: 100,
    late: 0,
    lateMsMax: 0,
    unsent: 0,
    achievedPerS: 10,
    inFlightMax: 1,
    busy: 0.1,
    timeline: [],
  };
  const quick = Array.from({ length: 100 }, () => 20);
  const bends = (change: Partial<typeof sending>, recorder = shown(quick)): string | undefined => stepOf(10, { ...sending, ...change }, recorder, 100).bends;
  assert.equal(bends({}), undefined);
  assert.match(bends({}, shown([...quick, 500, 500])) ?? "", /^p99 is 50\d ms, above 100 ms$/);
  assert.match(bends({}, shown(quick, 2)) ?? "", /^2 of 100 actions failed$/);
  assert.equal(bends({}, shown(quick, 1)), undefined, "one of a hundred is allowed");
  assert.equal(bends({ achievedPerS: 8 }), "8.00/s were done of 10/s");
  assert.equal(bends({ achievedPerS: 9.9 }), undefined);
  assert.equal(bends({ unsent: 3 }), "3 arrivals could not be sent");
});

/** What a deployment would show that does `capacity` actions a second, each in 10 ms unless they queue. */
const deployment = (capacity: number, tried: number[]) => async (rate: number) => {
  tried.push(rate);
  const isOver = rate > capacity;
  const sending = { name: "", rate, durationS: 1, scheduled: 1_000, sent: 1_000, late: 0, lateMsMax: 0, unsent: 0, inFlightMax: 1, busy: 0.1, timeline: [] };
  return { sending: { ...sending, achievedPerS: isOver ? capacity : rate }, recorder: shown([isOver ? 5_000 : 10]) };
};

test("the limit is found within a tenth, above and below the first rate", async () => {
  const { signal } = new AbortController();
  for (const [capacity, rate] of [
    [137, 10],
    [10.5, 10],
    [37, 100],
  ] as const) {
    const tried: number[] = [];
    const { result } = await findLimit({ rate, durationMs: 1, p99MsMax: 1_000 }, deployment(capacity, tried), signal);
    assert.ok(result.holds <= capacity && capacity < (result.bends ?? 0), `${result.holds} to ${result.bends}`);
    assert.ok((result.bends ?? 0) / result.holds <= 1.1, `${result.holds} to ${result.bends}`);
    assert.match(result.why, /^holds [\d.]+\/s and bends at [\d.]+\/s: p99 is 50\d\d ms, above 1000 ms/);
    const bent = result.steps.filter(({ bends }) => bends !== undefined).map((step) => step.rate);
    assert.ok(
      bent.every((one) => tried.filter((each) => each === one).length === 2),
      "each that bends is tried twice",
    );
  }
});

test("one disturbance is no limit, and a search without an end gives up", async () => {
  const { signal } = new AbortController();
  const steady = deployment(64, []);
  let calls = 0;
  const disturbed = async (rate: number) => (++calls === 2 ? deployment(0, [])(rate) : steady(rate));
  const { result } = await findLimit({ rate: 4, durationMs: 1, p99MsMax: 1_000 }, disturbed, signal);
  assert.ok(result.holds >= 60, `${result.holds}`);
  const none = await findLimit({ rate: 8, durationMs: 1, p99MsMax: 1_000 }, deployment(0, []), signal);
  assert.match(none.result.why, /^bends already at [\d.]+\/s/);
  const all = await findLimit({ rate: 1, durationMs: 1, p99MsMax: 1_000 }, deployment(Number.POSITIVE_INFINITY, []), signal);
  assert.match(all.result.why, /^holds 32768\/s, the highest rate that was tried/);
});
