/** Compares results row by row, with a verdict that knows how much each of them varies by chance. */
import { alignColumns } from "../../shared/util/columns.ts";
import type { Terminal } from "../../systemd/base/terminal.ts";
import { precise } from "../precise.ts";
import { type Estimate, failuresMore, ratioOf } from "../statistics.ts";
import { Latencies } from "./latencies.ts";
import { p99CountMin } from "./print.ts";
import type { Result, RowResult } from "./result.ts";

/** High, because there are many rows: of a hundred that have not changed, one will still look as if it had. */
export const confidence = 0.99;

export type Judgement = "faster" | "slower" | "fewer failures" | "more failures" | "no difference that can be told" | "too few to tell";

export interface Verdict {
  readonly row: string;
  readonly metric: "p50" | "p99" | "failures";
  /** Of all given results of a side together: milliseconds, or the share of failures. */
  readonly base: number;
  readonly other: number;
  /** The change, and the range in which it lies: 0.1 is a tenth more. For failures, the difference of the shares. */
  readonly change: Estimate | undefined;
  readonly judgement: Judgement;
}

const metrics = [
  { metric: "p50", share: 0.5, countMin: 20 },
  { metric: "p99", share: 0.99, countMin: p99CountMin },
] as const;

/** @param base the results of one side */
export function compareResults(base: readonly Result[], other: readonly Result[]): Verdict[] {
  const names = [...new Set(base.flatMap(({ rows }) => rows.map(({ name }) => name)))];
  return names.flatMap((name) => {
    const [before, after] = [base, other].map((results) => intervalsOf(results, name)) as [Intervals, Intervals];
    return after.flat().length === 0 ? [] : [...metrics.map((metric) => speedOf(name, metric, before, after)), ...failuresOf(name, before, after)];
  });
}

/** Of each run. */
type Intervals = readonly RowResult["intervals"][];

const intervalsOf = (results: readonly Result[], name: string): Intervals => results.map(({ rows }) => rows.find((row) => row.name === name)?.intervals ?? []);

type Decoded = readonly (readonly Latencies[])[];

function speedOf(row: string, { metric, share, countMin }: (typeof metrics)[number], before: Intervals, after: Intervals): Verdict {
  const decoded = (runs: Intervals): Decoded => runs.map((run) => run.map(({ histogram }) => Latencies.decode(histogram)));
  const [first, second] = [decoded(before), decoded(after)];
  const [base, other] = [Latencies.sum(first.flat()), Latencies.sum(second.flat())];
  const figures = { row, metric, base: base.percentile(share), other: other.percentile(share) };
  const isEnough = Math.min(base.count, other.count) >= countMin;
  const blocks = (runs: Decoded) => runs.map((run) => run.map((part) => [...part.values()]));
  const ratio = isEnough ? ratioOf(blocks(first), blocks(second), { share, confidence, isPaired: false }) : undefined;
  if (!ratio) return { ...figures, change: undefined, judgement: "too few to tell" };
  const change = { value: ratio.value - 1, low: ratio.low - 1, high: ratio.high - 1 };
  return { ...figures, change, judgement: judge(change, "faster", "slower") };
}

/** Nothing where neither side has a failure. */
function failuresOf(row: string, before: Intervals, after: Intervals): Verdict[] {
  const share = (intervals: Intervals): number => sumOf(intervals, "failures") / Math.max(1, sumOf(intervals, "count"));
  const figures = { row, metric: "failures", base: share(before), other: share(after) } as const;
  if (figures.base === 0 && figures.other === 0) return [];
  const change = failuresMore(before, after, confidence);
  return [{ ...figures, change, judgement: change ? judge(change, "fewer failures", "more failures") : "too few to tell" }];
}

const sumOf = (intervals: Intervals, field: "count" | "failures"): number => intervals.flat().reduce((sum, interval) => sum + interval[field], 0);

/** Less is better; the range must not contain "no change". */
function judge({ low, high }: Estimate, better: Judgement, worse: Judgement): Judgement {
  if (high < 0) return better;
  return low > 0 ? worse : "no difference that can be told";
}

export const isWorse = ({ judgement }: Verdict): boolean => judgement === "slower" || judgement === "more failures";

/** In what the two sides differ that should be the same. */
export function differencesOf(base: readonly Result[], other: readonly Result[]): string[] {
  const all = [...base, ...other];
  const facts: readonly [string, (result: Result) => string][] = [
    ["the workload", ({ mix }) => mix],
    ["the load", ({ load }) => load],
    ["the generator's machine", ({ machine }) => machine.cpu],
  ];
  const differing = facts.filter(([, of]) => new Set(all.map(of)).size > 1).map(([name, of]) => `${name} differs: ${[...new Set(all.map(of))].join(" / ")}`);
  const limited = all.filter(({ generator }) => generator.limits.length > 0).map(({ runId }) => `in run ${runId}, the generator may have been the limit`);
  const early = all.filter(({ isComplete }) => !isComplete).map(({ runId }) => `run ${runId} ended early`);
  const single = base.length > 1 && other.length > 1 ? [] : ["what changes from run to run is unknown: give several runs on each side, made in turns"];
  return [...differing, ...busier(all), ...limited, ...early, ...single];
}

/** Load averages for each core that are further apart than this are told: the runs had different shares of the machine. */
const loadApart = 0.5;

function busier(all: readonly Result[]): string[] {
  const loads = all.map(({ machine }) => machine.loadAverage / machine.cores);
  if (Math.max(...loads) - Math.min(...loads) <= loadApart) return [];
  return [
    `the generator's machine was busier in some runs than in others: load averages ${all.map(({ machine }) => machine.loadAverage.toFixed(1)).join(", ")}`,
  ];
}

const percent = (share: number): string => `${share > 0 ? "+" : ""}${(share * 100).toFixed(Math.abs(share) < 0.1 ? 1 : 0)} %`;

/** The verdict in words, such as "faster by 12 %". */
export function wordsOf({ judgement, change, metric }: Verdict): string {
  if (!change || judgement.startsWith("no") || judgement.startsWith("too")) return judgement;
  return `${judgement} by ${percent(Math.abs(change.value)).replace("+", "")}${metric === "failures" ? " of all" : ""}`;
}

export function printComparison(terminal: Terminal, verdicts: readonly Verdict[], differences: readonly string[]): void {
  const value = ({ metric }: Verdict, figure: number): string => (metric === "failures" ? `${(figure * 100).toFixed(2)} %` : `${precise(figure)} ms`);
  const rows = verdicts.map((verdict) => {
    const { row, metric, base, other, change } = verdict;
    const range = change ? `${percent(change.low)} to ${percent(change.high)}` : "";
    return [row, metric, value(verdict, base), value(verdict, other), range, wordsOf(verdict)];
  });
  const headings = ["", "", "before", "after", `change (${confidence * 100} % sure)`, "verdict"];
  for (const [index, line] of alignColumns([headings, ...rows]).entries()) {
    const verdict = verdicts[index - 1];
    const colour = index === 0 ? "bold" : verdict && isWorse(verdict) ? "red" : /^(faster|fewer)/.test(verdict?.judgement ?? "") ? "green" : undefined;
    terminal.line(colour ? terminal.paint(colour, line) : line);
  }
  for (const difference of differences) terminal.warn(difference);
}
