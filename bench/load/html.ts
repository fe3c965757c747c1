/** The result of a load as one HTML file, which needs nothing else. */
import { Html, html } from "../../shared/util/html.ts";
import { computerText } from "../computer.ts";
import { Latencies } from "./latencies.ts";
import { colours, type Plot, plotOf } from "./plot.ts";
import { cellsOf, errorsOf, p99CountMin, problemsOf, rowHeadings, sendingLines } from "./print.ts";
import { intervalCount } from "./recorder.ts";
import type { LimitResult, Result, RowResult } from "./result.ts";

const style = `
:root { color-scheme: light dark; --text: #1c2024; --dim: #60646c; --line: #dde1e6; --back: #fff; --bad: #b3261e; --band: #f6f7f9 }
@media (prefers-color-scheme: dark) { :root { --text: #eceef0; --dim: #a2a8b0; --line: #33383f; --back: #15181c; --bad: #ff8a80; --band: #1c2025 } }
body { font: 15px/1.5 system-ui, "Inter", "DejaVu Sans", sans-serif; color: var(--text); background: var(--back); max-width: 1340px; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.5rem; margin: 0 } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem } p { margin: .25rem 0 } .dim { color: var(--dim) }
.problems { border-left: 4px solid var(--bad); padding: .25rem 1rem; margin: 1rem 0; list-style: none }
.scroll { overflow-x: auto } table { border-collapse: collapse; font-variant-numeric: tabular-nums; min-width: 100% }
th, td { text-align: right; padding: .3rem .7rem; border-bottom: 1px solid var(--line); white-space: nowrap }
th { color: var(--dim); font-weight: 600 } th:first-child, td:first-child { text-align: left } tr.mark td { color: var(--dim) } tr.mark td:first-child { padding-left: 2rem }
td.words { text-align: left; white-space: normal } .failed { color: var(--bad); font-weight: 600 }
.plots { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(420px, 100%), 1fr)); gap: 1rem } figure { margin: 0; background: var(--band); border-radius: 8px; padding: .75rem }
figcaption { font-weight: 600 } svg { width: 100%; height: auto; display: block } svg text { font-size: 11px; fill: var(--dim) } svg .axis { font-size: 12px }
.grid { stroke: var(--line); fill: none } .line { fill: none; stroke-width: 1.8; stroke-linejoin: round } .dashed { stroke-dasharray: 5 4 }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: .1rem 1rem; padding: 0; margin: .25rem 0 0; font-size: 13px; color: var(--dim) }
.key { display: inline-block; width: 18px; height: 3px; margin: 0 6px 3px 0; vertical-align: middle; background: var(--c) } .key.dashed { background: repeating-linear-gradient(90deg, var(--c) 0 5px, transparent 5px 8px) }
.line { stroke: var(--c) } circle { fill: var(--c) }
${["#2a86c4", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8f7bd6", "#7f8790"].map((colour, index) => `.c${index} { --c: ${colour} }`).join("\n")}
@media print { body { max-width: none } }
`;

/** Where the percentile axis has its marks, as far as there are values. */
const percentileTicks = [0, 0.5, 0.9, 0.99, 0.999, 0.9999].map((share) => [1 / (1 - share), `${Number((share * 100).toPrecision(6))} %`] as const);
const intervalTicks = Array.from({ length: intervalCount / 5 }, (_, index) => [5 * (index + 1), String(5 * (index + 1))] as const);
/** The cell after the title in which failures stand. */
const failedColumn = rowHeadings.indexOf("failed") - 1;
/** A line through fewer points says nothing. */
const pointsMin = 5;

/** The whole page. */
export function htmlOf(result: Result): string {
  const { mix, load, target, runId, startedAt, about, machine, durationS } = result;
  const problems = problemsOf(result);
  const actions = result.rows.filter(({ isMark }) => !isMark);
  const page = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${mix}: ${load}</title>
<style>${new Html(style)}</style>
</head>
<body>
<h1>${mix}: ${load}</h1>
<p>${about}</p>
<p class="dim">${target}, run ${runId}, ${startedAt}, ${Math.round(durationS)} s. Sent from ${computerText(machine)}, Node.js ${machine.node}, seed ${result.seed}.</p>
${problems.length > 0 && html`<ul class="problems">${problems.map((problem) => html`<li class="failed">${problem}</li>`)}</ul>`}
${result.limit && limitSection(result.limit)}
<h2>Latency</h2>
<p class="dim">Milliseconds from when each action was due, so that waiting to be sent counts. Failures have no latency. A p99 needs ${p99CountMin} values.</p>
<div class="scroll"><table>
<thead><tr>${rowHeadings.map((heading) => html`<th scope="col">${heading}</th>`)}</tr></thead>
<tbody>${result.rows.map((row) => rowOf(row, result))}</tbody>
</table></div>
${sendingLines(result).map((line) => html`<p class="dim">${line}</p>`)}
${errorSection(result)}
<h2>Plots</h2>
<div class="plots">
${plotOf(distribution(actions))}
${result.sendings.length <= 4 && result.sendings.map((sending) => plotOf(timeline(sending)))}
${actions.filter(({ intervals }) => intervals.filter(({ count }) => count > 0).length >= pointsMin).map((row) => plotOf(overTime(row)))}
</div>
</body>
</html>
`;
  return page.text;
}

function rowOf(row: RowResult, result: Result): Html {
  const [title = "", ...cells] = cellsOf(row, result);
  const values = cells.map((cell, index) => html`<td${index === failedColumn && row.failures > 0 && new Html(' class="failed"')}>${cell}</td>`);
  return html`<tr${row.isMark && new Html(' class="mark"')}><td>${title.trim()}</td>${values}</tr>`;
}

function errorSection(result: Result): Html | undefined {
  const errors = Object.entries(errorsOf(result));
  if (errors.length === 0) return undefined;
  const rows = errors.map(([code, count]) => html`<tr><td>${code}</td><td>${count}</td><td class="words">${result.messages[code] ?? ""}</td></tr>`);
  return html`<h2>Failures</h2><div class="scroll"><table><thead><tr><th>code</th><th>n</th><th class="words">first message</th></tr></thead><tbody>${rows}</tbody></table></div>`;
}

function limitSection(limit: LimitResult): Html {
  const rows = limit.steps.map(({ rate, achievedPerS, p50, p99, failures, bends }) => {
    const cells = [rate, achievedPerS, p50, p99, failures].map((value) => html`<td>${value.toLocaleString("en", { maximumFractionDigits: 1 })}</td>`);
    return html`<tr>${cells}<td class="words">${bends ?? "holds"}</td></tr>`;
  });
  const points = (pick: (step: (typeof limit.steps)[number]) => number, bends: boolean) =>
    limit.steps.filter((step) => (step.bends !== undefined) === bends).map((step) => [step.rate, pick(step)] as const);
  const plot = (title: string, unit: string, scale: "log" | "linear", pick: (step: (typeof limit.steps)[number]) => number): Plot => ({
    title,
    x: { title: "arrivals a second", scale: "log" },
    y: { title: unit, scale },
    series: [
      { name: "holds", colour: 2, isDots: true, points: points(pick, false) },
      { name: "bends", colour: 1, isDots: true, points: points(pick, true) },
    ],
  });
  return html`<h2>Limit</h2>
<p>The deployment ${limit.why}.</p>
<p class="dim">A rate bends when more than 1 % of the actions fail, p99 is above ${limit.p99MsMax} ms, less than 95 % of the rate is done, or arrivals cannot be sent; each is tried a second time before that is believed.</p>
<div class="scroll"><table><thead><tr><th>rate/s</th><th>done/s</th><th>p50 ms</th><th>p99 ms</th><th>failed</th><th></th></tr></thead><tbody>${rows}</tbody></table></div>
<div class="plots">${plotOf(plot("p99 by rate", "p99, ms", "log", (step) => step.p99))}${plotOf(plot("Done by rate", "done a second", "linear", (step) => step.achievedPerS))}</div>`;
}

/** Latency by percentile, on the axis of HdrHistogram: each tick is ten times rarer. */
function distribution(rows: readonly RowResult[]): Plot {
  const series = rows.slice(0, colours).map(({ name, intervals }) => {
    const all = Latencies.sum(intervals.map(({ histogram }) => Latencies.decode(histogram)));
    let seen = 0;
    const points = [...all.values()].map(([ms, count]) => {
      seen += count;
      // The last value stands for all that is rarer than one in `count`.
      return [1 / (1 - Math.min(seen, all.count - 0.5) / all.count), ms] as const;
    });
    return { name, points };
  });
  const most = Math.max(1, ...series.flatMap(({ points }) => points.slice(-1).map(([x]) => x)));
  const ticks = percentileTicks.filter(([at], index) => index === 0 || at <= most * 2);
  return { title: "Latency by percentile", x: { title: "percentile", scale: "log", ticks }, y: { title: "ms", scale: "log" }, series };
}

function timeline({ name, timeline: bins }: Result["sendings"][number]): Plot {
  const widthS = (bins[1]?.atS ?? 1) - (bins[0]?.atS ?? 0) || 1;
  const points = (pick: (bin: (typeof bins)[number]) => number) => bins.map((bin) => [bin.atS + widthS / 2, pick(bin) / widthS] as const);
  const series = [
    // In sequence, nothing is due at a time of its own.
    ...(bins.some(({ scheduled }) => scheduled > 0) ? [{ name: "due", points: points(({ scheduled }) => scheduled), isDashed: true, colour: 7 }] : []),
    { name: "done", points: points(({ ended }) => ended), colour: 2 },
  ];
  return { title: `Arrivals and ends, ${name}`, x: { title: "seconds", scale: "linear" }, y: { title: "a second", scale: "linear" }, series };
}

/** One plot for each action: its percentiles in the twenty intervals, and its failures. */
function overTime({ name, intervals }: RowResult): Plot {
  const points = (pick: (interval: (typeof intervals)[number]) => number) =>
    intervals.flatMap((interval, index) => (interval.count > interval.failures ? [[index + 1, pick(interval)] as const] : []));
  const failed = intervals.flatMap(({ failures }, index) => (failures > 0 ? [[index + 1, Math.max(1, ...intervals.map(({ p99 }) => p99))] as const] : []));
  const series = [
    { name: "p50", points: points(({ p50 }) => p50), colour: 0 },
    { name: "p99", points: points(({ p99 }) => p99), colour: 1 },
    ...(failed.length > 0 ? [{ name: "has failures", points: failed, isDots: true, colour: 3 }] : []),
  ];
  return { title: name, x: { title: "interval, in the order of arrival", scale: "linear", ticks: intervalTicks }, y: { title: "ms", scale: "log" }, series };
}
