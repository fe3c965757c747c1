/** Reads the text format of Prometheus strictly, and finds what its conventions do not allow. */
import assert from "node:assert/strict";

export interface Metric {
  readonly type: string;
  readonly help: string;
  readonly samples: { readonly name: string; readonly labels: Readonly<Record<string, string>>; readonly value: number }[];
}

const sampleLine = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (-?\d+(?:\.\d+)?(?:e[+-]?\d+)?|nan|[+-]inf)$/i;
const label = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\[\\"n])*)"(?:,|$)/y;

/** @throws {assert.AssertionError} at the first line that a strict reader would not take. */
export function parseMetrics(text: string): Map<string, Metric> {
  assert.ok(text.endsWith("\n"), "the last line ends");
  const metrics = new Map<string, Metric>();
  let current: { name: string; metric: Metric } | undefined;
  let help: { name: string; words: string } | undefined;
  for (const line of text.split("\n").filter(Boolean)) {
    const [, keyword, name = "", rest = ""] = /^# (HELP|TYPE) (\S+) (.+)$/.exec(line) ?? [];
    if (keyword === "HELP") help = { name, words: rest };
    else if (keyword === "TYPE") {
      assert.equal(help?.name, name, `HELP comes right before TYPE: ${line}`);
      assert.ok(!metrics.has(name), `${name} comes once, in one piece`);
      assert.match(rest, /^(counter|gauge|histogram|summary)$/, line);
      current = { name, metric: { type: rest, help: help?.words ?? "", samples: [] } };
      metrics.set(name, current.metric);
    } else addSample(line, current);
  }
  for (const [name, { samples }] of metrics) {
    const identities = samples.map((sample) => sample.name + JSON.stringify(Object.entries(sample.labels).sort()));
    assert.equal(new Set(identities).size, identities.length, `${name} has no series twice`);
  }
  return metrics;
}

function addSample(line: string, current: { name: string; metric: Metric } | undefined): void {
  const match = sampleLine.exec(line);
  assert.ok(match && current, `a sample of the metric above: ${line}`);
  const [, name = "", list = "", value = ""] = match;
  const suffixes: Readonly<Record<string, string>> = { histogram: "(_bucket|_sum|_count)", summary: "(_sum|_count)?" };
  assert.match(name, new RegExp(`^${current.name}${suffixes[current.metric.type] ?? ""}$`), line);
  current.metric.samples.push({ name, labels: labelsOf(list, line), value: Number(value.replace(/inf/i, "Infinity")) });
}

function labelsOf(list: string, line: string): Record<string, string> {
  const labels: Record<string, string> = {};
  label.lastIndex = 0;
  while (label.lastIndex < list.length) {
    const [, name = "", value = ""] = label.exec(list) ?? assert.fail(`labels that can be read: ${line}`);
    assert.ok(!(name in labels), `a label comes once: ${line}`);
    labels[name] = value;
  }
  return labels;
}

/** What is wrong with the names, types, units and values. */
export function problemsOf(metrics: ReadonlyMap<string, Metric>): string[] {
  return [...metrics].flatMap(([name, metric]) => [
    ...(name.endsWith("_total") === (metric.type === "counter") ? [] : [`${name} is a ${metric.type}`]),
    ...(/_(ms|milliseconds|kb|mb|mib|minutes)(_|$)/.test(name) ? [`${name} is not in a base unit`] : []),
    ...(/_(bucket|sum|count)$/.test(name) ? [`${name} ends like a part of a histogram`] : []),
    ...(metric.type === "counter" && metric.samples.some(({ value }) => !(value >= 0)) ? [`${name} is less than nothing`] : []),
    ...(metric.type === "histogram" ? histogramProblems(name, metric) : []),
  ]);
}

/** Each series: buckets that grow, up to +Inf, which counts all. */
function histogramProblems(name: string, { samples }: Metric): string[] {
  const key = ({ le: _, ...labels }: Readonly<Record<string, string>>): string => JSON.stringify(labels);
  return [...Map.groupBy(samples, ({ labels }) => key(labels))].flatMap(([series, own]) => {
    const buckets = own.filter((sample) => sample.name === `${name}_bucket`);
    const bounds = buckets.map(({ labels }) => Number(labels.le?.replace("+Inf", "Infinity")));
    const grows = (numbers: readonly number[]): boolean => numbers.every((number, at) => at === 0 || number >= (numbers[at - 1] ?? 0));
    const count = own.find((sample) => sample.name === `${name}_count`)?.value;
    const isWhole = grows(bounds) && bounds.at(-1) === Number.POSITIVE_INFINITY && grows(buckets.map(({ value }) => value));
    const adds = buckets.at(-1)?.value === count && own.some((sample) => sample.name === `${name}_sum`);
    return isWhole && adds ? [] : [`${name}${series} does not add up`];
  });
}
