/** The formats of /metrics: that of Prometheus, and OpenMetrics, which has exemplars. */
import { boundsS, type Observed } from "../../shared/util/histogram.ts";

export type Format = "prometheus" | "openmetrics";

const openMetricsType = "application/openmetrics-text";

/** What an `Accept` header asks for. Prometheus names all formats that it reads, the one that it likes best first. */
export function formatFor(accept: string): Format {
  const wanted = accept.split(",").map((item) => {
    const [type = "", ...parameters] = item.split(";").map((part) => part.trim().toLowerCase());
    const weight = parameters.find((parameter) => parameter.startsWith("q="))?.slice(2) ?? "1";
    return { type, weight: Number(weight) || 0 };
  });
  const weightOf = (...types: string[]): number => Math.max(0, ...wanted.flatMap(({ type, weight }) => (types.includes(type) ? [weight] : [])));
  const weight = weightOf(openMetricsType);
  return weight > 0 && weight >= weightOf("text/plain") ? "openmetrics" : "prometheus";
}

type Labels = Readonly<Record<string, string>>;

/** One metric with all of its series; empty if there are none. */
export function histogramText(name: string, help: string, series: readonly { readonly labels: Labels; readonly observed: Observed }[], format: Format): string {
  if (series.length === 0) return "";
  const all = series.flatMap(({ labels, observed }) => lines(name, labels, observed, format));
  return [`# HELP ${name} ${help}`, `# TYPE ${name} histogram`, ...all, ""].join("\n");
}

function lines(name: string, labels: Labels, { counts, sum, exemplars = [] }: Observed, format: Format): string[] {
  const found = new Map(format === "openmetrics" ? exemplars.map((one) => [one.bucket, one]) : []);
  let total = 0;
  const buckets = ([...boundsS, "+Inf"] as const).map((bound, at) => {
    total += counts[at] ?? 0;
    const one = found.get(at);
    const exemplar = one ? ` # ${labelled({ trace_id: one.trace_id })} ${one.seconds} ${one.at_ms / 1_000}` : "";
    return `${name}_bucket${labelled({ ...labels, le: String(bound) })} ${total}${exemplar}`;
  });
  return [...buckets, `${name}_sum${labelled(labels)} ${sum}`, `${name}_count${labelled(labels)} ${total}`];
}

function labelled(labels: Labels): string {
  return `{${Object.entries(labels)
    .map(([name, value]) => `${name}="${escaped(value)}"`)
    .join(",")}}`;
}

const escaped = (value: string): string => value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");

const counterSuffix = "_total";

/**
 * Prometheus text as OpenMetrics: counters are described without `_total`, which only their samples have, nothing is blank, and
 * the end is said. prom-client renames its metrics for this format, so it could not give both.
 */
export function openMetricsOf(text: string): string {
  const types = new Map([...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name = "", type = ""]) => [name, type]));
  const lines = text.split("\n").filter(Boolean);
  return [...lines.map((line) => familyLine(line, types)), "# EOF\n"].join("\n");
}

function familyLine(line: string, types: ReadonlyMap<string, string>): string {
  const [, keyword, name = "", rest] = /^# (HELP|TYPE) (\S+) (.*)$/.exec(line) ?? [];
  if (keyword === undefined || types.get(name) !== "counter") return line;
  const family = name.slice(0, -counterSuffix.length);
  if (!types.has(family)) return `# ${keyword} ${family} ${rest}`;
  // Another metric has the name: a counter could not be told from it.
  return keyword === "TYPE" ? `# TYPE ${name} unknown` : line;
}
