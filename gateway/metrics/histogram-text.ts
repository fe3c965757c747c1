/** Prometheus text for histograms that were counted elsewhere: prom-client can only export what it counts itself. */
import { boundsS, type Observed } from "../../shared/util/histogram.ts";

type Labels = Readonly<Record<string, string>>;

/** One metric with all of its series; empty if there are none. */
export function histogramText(name: string, help: string, series: readonly { readonly labels: Labels; readonly observed: Observed }[]): string {
  if (series.length === 0) return "";
  return [`# HELP ${name} ${help}`, `# TYPE ${name} histogram`, ...series.flatMap(({ labels, observed }) => lines(name, labels, observed)), ""].join("\n");
}

function lines(name: string, labels: Labels, { counts, sum }: Observed): string[] {
  let total = 0;
  const buckets = ([...boundsS, "+Inf"] as const).map((bound, at) => {
    total += counts[at] ?? 0;
    return `${name}_bucket${labelled({ ...labels, le: String(bound) })} ${total}`;
  });
  return [...buckets, `${name}_sum${labelled(labels)} ${sum}`, `${name}_count${labelled(labels)} ${total}`];
}

function labelled(labels: Labels): string {
  return `{${Object.entries(labels)
    .map(([name, value]) => `${name}="${escaped(value)}"`)
    .join(",")}}`;
}

const escaped = (value: string): string => value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
