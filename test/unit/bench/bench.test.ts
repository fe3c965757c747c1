/** How `npm run bench` measures in turns, and what it says of the ratio. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Recorder } from "../../../bench/load/recorder.ts";
import { atRate, type Contender, takeTurns, timing } from "../../../bench/measure.ts";
import { parseOptions } from "../../../bench/options.ts";
import { sectionOf, withSection } from "../../../bench/readme.ts";
import { certaintyOf } from "../../../bench/report.ts";
import { areTight, compare, own, type Row, rowOf, rowsOf } from "../../../bench/rows.ts";
import { rowsOfLoad } from "../../../bench/scenarios/burst.ts";
import { createTask, fromNothing, withSharedIds } from "../../../bench/scenarios/create.ts";
import { rowsOfTurns } from "../../../bench/scenarios/hostile.ts";
import type { Estimate } from "../../../bench/statistics.ts";
import { judge } from "../../../bench/targets.ts";
import { seededRandom } from "../../helpers/random.ts";

const rounds = { warmUp: 1, countMin: 3, countMax: 200, budgetMs: 60_000, random: seededRandom(1), signal: new AbortController().signal };

/** Takes `ms`, up to `noise` more as chance has it, which the contenders of a round share in part. */
function contender(name: string, ms: number, noise: number, order: string[] = []): Contender<"ms"> {
  const random = seededRandom(name.length);
  return timing(name, async () => {
    order.push(name);
    return ms + noise * random();
  });
}

const ran = (order: readonly string[]): string => order.join(" ");

test("every contender has its turn in each round, in an order by chance, which a seed repeats; warm-up does not count", async () => {
  const orderOf = async (seed: number): Promise<string[]> => {
    const order: string[] = [];
    const contenders = ["a", "bb", "ccc"].map((name) => contender(name, 1, 0, order));
    const { inARow, afterAnother } = await takeTurns(contenders, { ...rounds, random: seededRandom(seed), countMax: 30 }, () => false);
    assert.deepEqual(
      Object.values(inARow).map(({ ms }) => ms.map((round) => round.length)),
      Array.from({ length: 3 }, () => Array.from({ length: 30 }, () => 1)),
    );
    assert.deepEqual(afterAnother, { a: {}, bb: {}, ccc: {} });
    return order;
  };
  const order = await orderOf(7);
  const eachRound = Array.from({ length: 31 }, (_, round) => order.slice(3 * round, 3 * round + 3));
  for (const round of eachRound) assert.equal(ran(round.toSorted()), "a bb ccc");
  assert.equal(new Set(eachRound.map(ran)).size, 6, "all orders occur");
  assert.deepEqual(await orderOf(7), order);
  assert.notDeepEqual(await orderOf(8), order);
});

test("the first call after somebody else's turn counts apart, and not where the same contender has two turns", async () => {
  const order: string[] = [];
  // A contender notices when another one has run.
  const noticing = (name: string): Contender<"ms"> =>
    timing(name, async () => {
      const isAfterAnother = order.at(-1) !== name;
      order.push(name);
      return isAfterAnother ? 100 : 1;
    });
  const taken = await takeTurns(["a", "b"].map(noticing), { ...rounds, turnMs: 0, countMax: 50 }, () => false);
  for (const name of ["a", "b"]) {
    const [inARow, afterAnother] = [taken.inARow[name]?.ms.flat() ?? [], taken.afterAnother[name]?.ms.flat() ?? []];
    assert.equal(inARow.length + afterAnother.length, 100);
    assert.ok(inARow.every((ms) => ms === 1) && afterAnother.every((ms) => ms === 100));
    assert.ok(inARow.length > 50 && afterAnother.length > 10, `${inARow.length} and ${afterAnother.length}`);
  }
});

test("a task whose turns have several calls has rows of its own for first calls", async () => {
  const both = [contender(own, 10, 0), contender("peer", 20, 0)] as const;
  const named = async (turnMs: number | undefined): Promise<string[]> =>
    (await compare("task", both, { ...rounds, turnMs })).map(({ task, contender: name, n }) => `${task} | ${name} | ${n}`);
  assert.deepEqual(await named(undefined), ["task | sandgate | 5", "task | peer | 5"]);
  const several = await named(0);
  assert.equal(several.length, 4);
  assert.match(several[2] ?? "", /^task, after somebody else \| sandgate \|/);
  assert.deepEqual(
    (await compare("alone", [both[0]], { ...rounds, turnMs: 0, countMax: 5 })).map(({ task }) => task),
    ["alone"],
  );
});

test("rounds end when the ratio is known, or when the time is over, but not before the least number", async () => {
  const count = async (noise: number, budgetMs: number): Promise<number> => {
    const taken = await takeTurns([contender(own, 10, noise), contender("peer", 20, noise)], { ...rounds, budgetMs }, (samples) => areTight(samples, ["ms"]));
    return taken.inARow[own]?.ms.length ?? 0;
  };
  const steady = await count(0.1, 60_000);
  assert.ok(steady >= 5 && steady < 20, `${steady}`);
  assert.ok((await count(40, 60_000)) > 3 * steady);
  assert.equal(await count(40, 0), 3);
});

test("at a fixed rate, operations begin when they are due, whatever those before them take, and their times count from then", async () => {
  const { signal } = new AbortController();
  const release = Promise.withResolvers<void>();
  let begun = 0;
  const stuck = atRate(1_000, 20, signal, () => {
    if (++begun === 20) release.resolve();
    return release.promise;
  });
  const latencies = await stuck;
  assert.equal(latencies.length, 20, "none waits for the one before it");
  assert.ok(
    latencies.every((ms, index) => index === 0 || ms <= (latencies[index - 1] ?? 0)),
    "all end together, and those that were due first have taken longest",
  );
  assert.deepEqual(await atRate(0, 20, signal, () => assert.fail("none is due")), []);
  await assert.rejects(
    atRate(1_000, 20, signal, () => Promise.reject(new Error("refused"))),
    /refused/,
  );
});

test("a row of a peer says how many times as fast Sandgate is, and how sure that is", () => {
  const times = (ms: number) => Array.from({ length: 20 }, (_, index) => [ms + (index % 3)]);
  const known = rowsOf("task", [
    { contender: own, rounds: times(10) },
    { contender: "peer", rounds: times(40) },
  ]);
  const [ours, peer] = known;
  assert.equal(ours?.speed, undefined);
  assert.ok(typeof peer?.speed === "object" && peer.speed.low > 3 && peer.speed.high < 4.5);
  const unknown = rowsOf("task", [
    { contender: own, rounds: [[1], [1]] },
    { contender: "peer", rounds: [[2], [2]] },
  ]);
  assert.equal(unknown[1]?.speed, "too few rounds");
  const uneven = rowsOf("task", [
    { contender: own, rounds: Array.from({ length: 20 }, (_, index) => [10 + 5 * (index % 2)]) },
    { contender: "peer", rounds: Array.from({ length: 20 }, (_, index) => [20 + 5 * (index % 3)]) },
  ]);
  assert.equal(certaintyOf([...known, ...unknown, ...uneven]), "1 of 3 ratios are known within a tenth.");
});

test("a target judges the contender that it is about: a create from nothing may miss what one from the pool meets", () => {
  const rows = [rowOf(createTask, own, [10]), rowOf(createTask, fromNothing, [90]), rowOf(createTask, "podman run -d", [100])];
  const verdicts = judge(rows).map(({ target, measured, met }) => [/from nothing/.test(target), measured, met]);
  assert.deepEqual(verdicts, [
    [false, "0.10 times", true],
    [true, "0.90 times", false],
  ]);
  assert.deepEqual(judge(rows.slice(1)).length, 1, "what was not measured is not judged");
});

test("what ranges of user ids cost a create from the pool is missed only where it can be told from chance", () => {
  const judged = (sharedMs: number, speed: Estimate) => judge([rowOf(createTask, own, [20]), rowOf(createTask, withSharedIds, [sharedMs], { speed })]);
  const [unsure, sure, little] = [
    judged(15, { value: 0.75, low: 0.6, high: 1.1 }),
    judged(15, { value: 0.75, low: 0.7, high: 0.8 }),
    judged(18, { value: 0.9, low: 0.88, high: 0.92 }),
  ].map(([verdict]) => [verdict?.measured, verdict?.met]);
  assert.deepEqual(
    [unsure, sure, little],
    [
      ["5.00 ms, a difference that cannot be told from chance", true],
      ["5.00 ms", false],
      ["2.00 ms", true],
    ],
  );
});

test("of a burst it is known how many failed, and its time only if none did", () => {
  const measured = (failing: number): Row[] => {
    const recorder = new Recorder();
    for (let index = 0; index < 100; index++) {
      const arrival = { row: "at once: first command", interval: index % 20, dueMs: performance.now() - index };
      if (index < failing) recorder.failed(arrival, new Error("refused"));
      else recorder.done(arrival, 0);
    }
    return rowsOfLoad({ rows: recorder.results() }).filter(({ task }) => task.includes("at once"));
  };
  const metOf = (rows: readonly Row[]) => judge(rows).map(({ met }) => met);
  const [whole, broken] = [measured(0), measured(3)];
  assert.ok((whole[1]?.p50 ?? 0) >= 99, "the slowest one");
  assert.deepEqual(
    [whole.map(({ n }) => n), metOf(whole)],
    [
      [100, 1],
      [true, true, true],
    ],
  );
  assert.deepEqual(
    [broken.map(({ n }) => n), metOf(broken)],
    [
      [97, 0],
      [false, false, true],
    ],
  );
});

test("beside floods, the slowest hundredth is told with its range, and where that has the border in it", () => {
  /** Turns of 100 commands of 1 ms, of which two take these milliseconds. */
  const turnsOf = (slow: readonly number[]) => slow.map((ms) => ({ commands: [...new Array<number>(98).fill(1), ms, ms], bare: [1] }));
  const quiet = turnsOf([10, 10, 10, 10, 10, 10]);
  const verdictOf = (slow: readonly number[]) => judge(rowsOfTurns(quiet, turnsOf(slow))).map(({ measured, met }) => [measured, met]);
  assert.deepEqual(verdictOf([15, 15, 15, 15, 15, 15]), [["1.50 times (between 1.50 and 1.50)", true]]);
  assert.deepEqual(verdictOf([30, 30, 30, 30, 30, 30]), [["3.00 times (between 3.00 and 3.00)", false]]);
  assert.match(String(verdictOf([11, 12, 19, 21, 30, 31])[0]?.[0]), /, so not sure\)$/);
  assert.deepEqual(
    judge(rowsOfTurns(quiet.slice(1, 3), turnsOf([30, 30]))).map(({ measured }) => measured),
    ["3.00 times"],
    "two turns have no range",
  );
});

test("scenarios are named one by one, and have a seed that can be given", () => {
  const all = parseOptions([]) ?? assert.fail();
  assert.ok(all.scenarios.includes("execute") && !all.scenarios.includes("memory") && all.wholeMsMax <= 360_000);
  assert.ok(all.budgetMs <= all.wholeMsMax);
  assert.ok(Number.isInteger(all.seed));
  const one = parseOptions(["execute", "--seed", "7"]);
  assert.deepEqual([one?.scenarios, one?.seed], [["execute"], 7]);
  assert.equal(parseOptions(["memory"])?.wholeMsMax, Number.POSITIVE_INFINITY);
  assert.throws(() => parseOptions(["--seed", "x"]), /--seed takes a whole number/);
  assert.throws(() => parseOptions(["speed"]), /no such scenario: speed/);
});

test("the README's section replaces the one before, and nothing else", () => {
  const machine = { cpu: "test", cores: 2, memoryGiB: 4, kernel: "6", node: "v22", loadAverage: 0, podman: "5", runtime: "crun", load: "wrk" };
  const rows = rowsOf("task", [
    { contender: own, rounds: [[1]] },
    { contender: "peer", rounds: [[2]] },
  ]);
  const section = sectionOf({
    startedAt: "2026-01-02T00:00:00Z",
    durationS: 360,
    seed: 7,
    machine,
    rows,
    targets: [{ target: "fast", measured: "2 times", met: false }],
  });
  assert.match(section, /^\| task \| sandgate \| 1 \|/m);
  assert.match(section, /^- Not met: fast: 2 times$/m);
  const once = withSection("# A\n\ntext\n\n## Load\n\nmore\n", section);
  assert.ok(once.startsWith("# A\n\ntext\n\n## Performance\n") && once.endsWith("\n\n## Load\n\nmore\n"));
  assert.equal(withSection(once, section), once);
  assert.throws(() => withSection("# A\n", section), /has neither/);
});
