/** How `npm run bench` measures in turns, and what it says of the ratio. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Contender, takeTurns, timing } from "../../../bench/measure.ts";
import { sectionOf, withSection } from "../../../bench/readme.ts";
import { areTight, own, rowsOf } from "../../../bench/rows.ts";
import { seededRandom } from "../../helpers/random.ts";

const rounds = { warmUp: 1, countMin: 3, countMax: 200, budgetMs: 60_000, signal: new AbortController().signal };

/** Takes `ms`, up to `noise` more as chance has it, which the contenders of a round share in part. */
function contender(name: string, ms: number, noise: number, order: string[] = []): Contender<"ms"> {
  const random = seededRandom(name.length);
  return timing(name, async () => {
    order.push(name);
    return ms + noise * random();
  });
}

test("contenders take turns, each round begins with another, and warm-up does not count", async () => {
  const order: string[] = [];
  const contenders = ["a", "bb", "ccc"].map((name) => contender(name, 1, 0, order));
  const samples = await takeTurns(contenders, { ...rounds, countMax: 3 }, () => false);
  assert.deepEqual(
    Object.values(samples).map(({ ms }) => ms.length),
    [3, 3, 3],
  );
  assert.equal(order.join(" "), "a bb ccc a bb ccc bb ccc a ccc a bb");
});

test("rounds end when the ratio is known, or when the time is over, but not before the least number", async () => {
  const count = async (noise: number, budgetMs: number): Promise<number> => {
    const samples = await takeTurns([contender(own, 10, noise), contender("peer", 20, noise)], { ...rounds, budgetMs }, (taken) => areTight(taken, ["ms"]));
    return samples[own]?.ms.length ?? 0;
  };
  const steady = await count(0.1, 60_000);
  assert.ok(steady >= 5 && steady < 20, `${steady}`);
  assert.ok((await count(40, 60_000)) > 3 * steady);
  assert.equal(await count(40, 0), 3);
});

test("a row of a peer says how many times as fast Sandgate is, and how sure that is", () => {
  const times = (ms: number) => Array.from({ length: 20 }, (_, index) => ms + (index % 3));
  const [ours, peer] = rowsOf("task", [
    { contender: own, ms: times(10) },
    { contender: "peer", ms: times(40) },
  ]);
  assert.equal(ours?.speed, undefined);
  assert.ok(typeof peer?.speed === "object" && peer.speed.low > 3 && peer.speed.high < 4.5);
  assert.equal(
    rowsOf("task", [
      { contender: own, ms: [1, 1] },
      { contender: "peer", ms: [2, 2] },
    ])[1]?.speed,
    "too few rounds",
  );
});

test("the README's section replaces the one before, and nothing else", () => {
  const machine = { cpu: "test", cores: 2, memoryGiB: 4, kernel: "6", node: "v22", loadAverage: 0, podman: "5", runtime: "crun", load: "wrk" };
  const rows = rowsOf("task", [
    { contender: own, ms: [1] },
    { contender: "peer", ms: [2] },
  ]);
  const section = sectionOf({
    startedAt: "2026-01-02T00:00:00Z",
    durationS: 360,
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
