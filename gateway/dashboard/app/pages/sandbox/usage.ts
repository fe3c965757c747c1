/** The resource usage of a sandbox, now and over the last hours. */
import type { SandboxUsage, UsageSample } from "../../../../../shared/schemas/usage.ts";
import { call } from "../../api.ts";
import { chart, type Point } from "../../charts.ts";
import { errorNotice, figure, meter } from "../../components/bits.ts";
import { choice } from "../../components/field.ts";
import type { Panel } from "../../components/tabs.ts";
import { fill, h } from "../../dom.ts";
import { clockTime, count, mebibytes, plural } from "../../format.ts";
import { type Poll, poll } from "../../poll.ts";

const everyMs = 10_000;
const hourMs = 3_600_000;
/** The most points in a chart; more would not be visible. */
const pointsMax = 240;

type Hours = "1" | "6" | "24";

export function usagePanel(id: string, signal: AbortSignal): Panel {
  let hours: Hours = "1";
  let samples: readonly UsageSample[] = [];
  let turns: Poll | undefined;
  let stop = new AbortController();
  const figures = h("div", "figures");
  const trouble = h("div", "form-trouble");
  const clockOf = (at: number): string => clockTime(new Date(at).toISOString());
  const empty = "No samples in this period yet. One is taken every 10 seconds.";
  const line = (title: string, least: number, unit: string, words: (value: number) => string) =>
    chart({ empty, title, kind: "line", least, scale: (value) => value + unit, ends: clockOf, read: ({ at, value }) => `${clockOf(at)}  ${words(value)}` });
  const cpu = line("CPU", 100, "%", percent);
  const memory = line("Memory", 16, " MB", mebibytes);
  const range = choice<Hours>(
    "Period",
    (["1", "6", "24"] as const).map((one) => [one, plural(Number(one), "hour")]),
    hours,
    (chosen) => {
      hours = chosen;
      samples = [];
      turns?.now();
    },
  );
  const draw = (): void => {
    const to = Date.now();
    const from = to - Number(hours) * hourMs;
    const within = samples.filter(({ timestamp }) => Date.parse(timestamp) >= from);
    const show = (drawing: typeof cpu, pick: (sample: UsageSample) => number): void => drawing.show(thinned(within, pick), from, to);
    show(cpu, ({ cpu_percent }) => cpu_percent);
    show(memory, ({ memory_mb }) => memory_mb);
  };
  const load = async (): Promise<void> => {
    const asked = hours;
    // Loads only new samples: a day has thousands.
    const last = samples.at(-1)?.timestamp;
    const from = last ? new Date(Date.parse(last) + 1) : new Date(Date.now() - Number(asked) * hourMs);
    const path = `/v1/sandboxes/${encodeURIComponent(id)}/status?from=${encodeURIComponent(from.toISOString())}`;
    const { current, history } = await call<SandboxUsage>("GET", path, { signal: stop.signal });
    if (asked !== hours) return;
    samples = [...samples, ...history];
    fill(trouble);
    fill(figures, ...figuresOf(current));
    draw();
  };
  const head = h("div", "section-head", h("h2", {}, "Usage"), range.element);
  return {
    element: h("div", "stack", head, trouble, figures, h("div", "charts", cpu.element, memory.element)),
    shown: () => {
      stop = new AbortController();
      const over = AbortSignal.any([signal, stop.signal]);
      const again = (): void => turns?.now();
      turns = poll({ everyMs, signal: over, work: load, failed: (error) => fill(trouble, errorNotice(error, again)) });
    },
    hidden: () => stop.abort(),
  };
}

function figuresOf({ cpu_percent, memory_mb, memory_percent, disk_mb, processes }: SandboxUsage["current"]): HTMLElement[] {
  return [
    figure("CPU", percent(cpu_percent), "", meter("CPU", cpu_percent, 100)),
    figure("Memory", mebibytes(memory_mb), "", meter("Memory", memory_percent, 100)),
    figure("Disk", mebibytes(disk_mb)),
    figure("Processes", count(processes)),
  ];
}

const percent = (value: number): string => `${value < 10 ? Number(value.toFixed(1)) : Math.round(value)}%`;

/** Averages neighbouring samples down to what a chart can show. */
function thinned(samples: readonly UsageSample[], pick: (sample: UsageSample) => number): Point[] {
  const size = Math.max(1, Math.ceil(samples.length / pointsMax));
  const points: Point[] = [];
  for (let at = 0; at < samples.length; at += size) {
    const group = samples.slice(at, at + size);
    const sum = group.reduce((total, sample) => total + pick(sample), 0);
    points.push({ at: Date.parse(group[Math.floor(group.length / 2)]?.timestamp ?? ""), value: sum / group.length });
  }
  return points;
}
