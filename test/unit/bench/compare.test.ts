/** Verdicts on results, and the report. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { compareResults, differencesOf, isWorse, wordsOf } from "../../../bench/load/compare.ts";
import { htmlOf } from "../../../bench/load/html.ts";
import { Latencies } from "../../../bench/load/latencies.ts";
import { intervalCount, Recorder } from "../../../bench/load/recorder.ts";
import { type Result, readResult, resultFormat } from "../../../bench/load/result.ts";
import { APIError, RateLimitError } from "../../../shared/client/errors.ts";
import { atEnd } from "../../helpers/fixture.ts";
import { seededRandom } from "../../helpers/random.ts";

interface Row {
  readonly name: string;
  /** Around which milliseconds its actions take. */
  readonly ms: number;
  readonly n?: number;
  /** Failures among the actions of each interval. */
  readonly failed?: number;
}

/** The result of a load with these rows. */
function result(rows: readonly Row[], seed: number): Result {
  const random = seededRandom(seed);
  const recorder = new Recorder();
  for (const { name, ms, n = 600, failed = 0 } of rows) {
    for (let index = 0; index < n; index++) {
      const arrival = { row: name, interval: Math.floor((index * intervalCount) / n), dueMs: performance.now() - ms * (1 + 0.3 * random()) };
      if (index % 30 < failed) recorder.failed(arrival, new APIError("the server said no", { status: 500, code: "internal_error" }));
      else recorder.done(arrival, 0);
    }
  }
  const machine = { cpu: "test", cores: 2, memoryGiB: 4, node: "v22", kernel: "6", loadAverage: 0 };
  const facts = {
    format: resultFormat,
    runId: `run${seed}`,
    startedAt: "2026-01-01T00:00:00.000Z",
    durationS: 60,
    target: "http://127.0.0.1:1",
    mix: "mine",
    about: "a test",
  } as const;
  const timeline = [{ atS: 0, scheduled: 1, ended: 1 }];
  const sending = {
    name: "10/s",
    rate: 10,
    durationS: 60,
    scheduled: 600,
    sent: 600,
    late: 0,
    lateMsMax: 1,
    unsent: 0,
    achievedPerS: 10,
    inFlightMax: 3,
    busy: 0.1,
    timeline,
  };
  const generator = { busy: 0.1, cpus: 0.1, loopDelayMsP99: 1, limits: [] };
  const measured = { sendings: [sending], generator, rows: recorder.results(), messages: recorder.messages };
  return { ...facts, load: "10/s for 60 s", seed, machine, ...measured, isComplete: true, leftOver: [] };
}

const words = (before: readonly Result[], after: readonly Result[]): string[] =>
  compareResults(before, after).map((verdict) => `${verdict.row} ${verdict.metric}: ${wordsOf(verdict).replace(/\d+(\.\d+)? %/, "N %")}`);

test("rows get verdicts: faster, slower, no difference, too few", () => {
  const before = result(
    [
      { name: "a", ms: 40 },
      { name: "b", ms: 40 },
      { name: "c", ms: 40 },
      { name: "d", ms: 40, n: 8 },
    ],
    1,
  );
  const after = result(
    [
      { name: "a", ms: 20 },
      { name: "b", ms: 80 },
      { name: "c", ms: 40 },
      { name: "d", ms: 40, n: 8 },
      { name: "new", ms: 1 },
    ],
    2,
  );
  assert.deepEqual(words([before], [after]), [
    ...["a p50: faster by N %", "a p99: faster by N %", "b p50: slower by N %", "b p99: slower by N %"],
    ...["c p50: no difference that can be told", "c p99: no difference that can be told", "d p50: too few to tell", "d p99: too few to tell"],
  ]);
  assert.deepEqual(
    compareResults([before], [after])
      .filter(isWorse)
      .map(({ row }) => row),
    ["b", "b"],
  );
});

test("failures are compared where there are any", () => {
  const [good, bad] = [result([{ name: "a", ms: 10 }], 3), result([{ name: "a", ms: 10, failed: 3 }], 4)];
  assert.deepEqual(words([good], [bad]).slice(2), ["a failures: more failures by N % of all"]);
  assert.deepEqual(words([bad], [good]).slice(2), ["a failures: fewer failures by N % of all"]);
});

test("what should be the same and is not is told", () => {
  const [one, other] = [result([{ name: "a", ms: 10 }], 5), { ...result([{ name: "a", ms: 10 }], 6), load: "20/s for 60 s", isComplete: false }];
  const hint = "what changes from run to run is unknown: give several runs on each side, made in turns";
  assert.deepEqual(differencesOf([one, one], [one, one]), []);
  assert.deepEqual(differencesOf([one], [one]), [hint]);
  assert.deepEqual(differencesOf([one], [other]), ["the load differs: 10/s for 60 s / 20/s for 60 s", "run run6 ended early", hint]);
  const beside = { ...one, machine: { ...one.machine, loadAverage: 6 } };
  assert.match(differencesOf([one], [beside])[0] ?? "", /busier in some runs than in others: load averages 0\.0, 6\.0$/);
});

test("a result survives its file, and anything else is refused", () => {
  const folder = mkdtempSync(join(tmpdir(), "sandgate-results-"));
  atEnd(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "a.json");
  const written = result([{ name: "a", ms: 10, failed: 1 }], 7);
  writeFileSync(file, JSON.stringify(written));
  assert.deepEqual(readResult(file), written);
  for (const text of ["{", "{}", JSON.stringify({ ...written, format: "other" })]) {
    writeFileSync(file, text);
    assert.throws(() => readResult(file, "a.json"), /^UsageError: a\.json is no result of npm run load --json: /);
  }
});

test("latencies keep three digits, and survive being encoded", () => {
  const latencies = Latencies.empty();
  for (let ms = 1; ms <= 1_000; ms++) latencies.record(ms);
  const decoded = Latencies.decode(latencies.encoded);
  for (const one of [latencies, decoded, Latencies.sum([decoded, Latencies.empty()])]) {
    assert.equal(one.count, 1_000);
    for (const share of [0.5, 0.9, 0.99, 1]) assert.ok(Math.abs(one.percentile(share) - share * 1_000) <= share * 1_000 * 0.002, `${share}`);
  }
  assert.equal(
    [...decoded.values()].reduce((sum, [, count]) => sum + count, 0),
    1_000,
  );
});

test("failures are counted by code, and those of limits apart", () => {
  const recorder = new Recorder();
  const arrival = { row: "a", interval: 0, dueMs: performance.now() };
  recorder.failed(arrival, new RateLimitError("slow down", { status: 429, code: "rate_limited" }));
  recorder.failed(arrival, new APIError("no", { status: 503, code: "unavailable" }));
  recorder.done(arrival, 5);
  recorder.mark(arrival, "half way", 3);
  const [row, mark] = recorder.results();
  assert.deepEqual([row?.count, row?.failures, row?.refused, row?.bytes], [3, 2, 1, 5]);
  assert.deepEqual(row?.errors, { rate_limited: 1, unavailable: 1 });
  assert.deepEqual([mark?.name, mark?.isMark, mark?.count], ["a, half way", true, 1]);
});

test("the report needs nothing from anywhere, and shows names as text", () => {
  const name = "<img src=x onerror=alert(1)>";
  const page = htmlOf({ ...result([{ name: "a", ms: 10, failed: 1 }], 8), about: name });
  assert.doesNotMatch(page, /<script|<img|<link|@import|\bsrc=["']?(?!x)|href=|url\(|https?:\/\/(?!127\.0\.0\.1)/);
  assert.ok(page.includes("&lt;img src=x onerror=alert(1)&gt;"));
  assert.match(page, /default-src 'none'/);
  assert.ok((page.match(/<svg /g) ?? []).length >= 3);
  assert.match(page, /internal_error/);
});
