/** Plots as inline SVG, readable in light and dark, without scripts. */
import { type Html, html } from "../../shared/util/html.ts";
import { precise } from "../precise.ts";

/** An axis. `log` axes show no values at or below 0. */
export interface Axis {
  readonly title: string;
  readonly scale: "linear" | "log";
  /** Positions with their labels; chosen by the values when absent. */
  readonly ticks?: readonly (readonly [at: number, label: string])[];
}

export interface Series {
  readonly name: string;
  readonly points: readonly (readonly [x: number, y: number])[];
  readonly isDashed?: boolean;
  /** Series with the same number have the same colour; its position when absent. */
  readonly colour?: number;
  /** Dots without a line between them. */
  readonly isDots?: boolean;
}

export interface Plot {
  readonly title: string;
  readonly x: Axis;
  readonly y: Axis;
  readonly series: readonly Series[];
}

/** As many as the style of the page has. */
export const colours = 8;
const [width, height] = [640, 300];
const margin = { left: 58, right: 26, top: 10, bottom: 40 };
const ticksWanted = 5;

interface Scale {
  readonly at: (value: number) => number;
  readonly ticks: readonly (readonly [number, string])[];
  readonly holds: (value: number) => boolean;
}

/** One plot with its title and legend. Shows nothing if there are no values. */
export function plotOf({ title, x, y, series }: Plot): Html {
  const across = scaleOf(
    x,
    series.flatMap(({ points }) => points.map(([value]) => value)),
    margin.left,
    width - margin.right,
  );
  const up = scaleOf(
    y,
    series.flatMap(({ points }) => points.map(([, value]) => value)),
    height - margin.bottom,
    margin.top,
  );
  if (!across || !up) return html``;
  const lines = series.map((one, index) => seriesOf(one, index, across, up));
  const legend = series.map(
    ({ name, colour, isDashed }, index) => html`<li><span class="key c${(colour ?? index) % colours}${isDashed && " dashed"}"></span>${name}</li>`,
  );
  return html`<figure><figcaption>${title}</figcaption>
<svg viewBox="0 0 ${width} ${height}" role="img" aria-label="${title}">
${across.ticks.map(([at, label]) => html`<path class="grid" d="M${round(at)} ${margin.top}V${height - margin.bottom}"/><text x="${round(at)}" y="${height - margin.bottom + 15}" text-anchor="middle">${label}</text>`)}
${up.ticks.map(([at, label]) => html`<path class="grid" d="M${margin.left} ${round(at)}H${width - margin.right}"/><text x="${margin.left - 6}" y="${round(at + 4)}" text-anchor="end">${label}</text>`)}
<text class="axis" x="${(width + margin.left - margin.right) / 2}" y="${height - 6}" text-anchor="middle">${x.title}</text>
<text class="axis" transform="translate(13 ${(height - margin.bottom + margin.top) / 2}) rotate(-90)" text-anchor="middle">${y.title}</text>
${lines}
</svg>${series.length > 1 && html`<ul class="legend">${legend}</ul>`}</figure>`;
}

function seriesOf({ name, points, isDashed, isDots, colour }: Series, index: number, across: Scale, up: Scale): Html {
  const shown = points.filter(([x, y]) => across.holds(x) && up.holds(y));
  const kind = `c${(colour ?? index) % colours}`;
  const at = shown.map(([x, y]) => [round(across.at(x)), round(up.at(y))] as const);
  const path = at.map(([x, y], position) => `${position === 0 ? "M" : "L"}${x} ${y}`).join("");
  // Dots can be pointed at, which tells their values.
  const dots =
    at.length <= 40 &&
    at.map(
      ([x, y], position) =>
        html`<circle class="${kind}" cx="${x}" cy="${y}" r="${isDots ? 4 : 2}"><title>${name}: ${precise(shown[position]?.[1] ?? 0)}</title></circle>`,
    );
  return html`${!isDots && html`<path class="line ${kind}${isDashed && " dashed"}" d="${path}"/>`}${dots}`;
}

function scaleOf({ scale, ticks }: Axis, values: readonly number[], from: number, to: number): Scale | undefined {
  const isLog = scale === "log";
  const holds = (value: number): boolean => Number.isFinite(value) && (!isLog || value > 0);
  const used = [...values, ...(ticks ?? []).map(([at]) => at)].filter(holds);
  if (used.length === 0) return undefined;
  const shape = isLog ? Math.log10 : (value: number): number => value;
  const least = used.reduce((one, other) => Math.min(one, other));
  const most = used.reduce((one, other) => Math.max(one, other));
  const [low, high] = rangeOf(isLog, least, most);
  const at = (value: number): number => from + ((shape(value) - shape(low)) / (shape(high) - shape(low))) * (to - from);
  const chosen = ticks ?? (isLog ? logTicks(low, high) : linearTicks(low, high));
  return { at, holds, ticks: chosen.map(([value, label]) => [at(value), label] as const) };
}

/** The ends of the axis: a linear one begins at 0, a logarithmic one leaves a little room. */
function rangeOf(isLog: boolean, least: number, most: number): [number, number] {
  if (isLog) return least === most ? [least / 2, most * 2] : [least / 1.15, most * 1.15];
  return [Math.min(0, least), most > 0 ? most * 1.05 : 1];
}

function linearTicks(low: number, high: number): [number, string][] {
  const raw = (high - low) / ticksWanted;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = ([1, 2, 5, 10].find((factor) => factor * power >= raw) ?? 10) * power;
  const count = Math.floor(high / step + 1e-9) + 1;
  return Array.from({ length: count }, (_, index) => [index * step, tidy(index * step)]);
}

/** 1, 2 and 5 of each power of ten, or only 1 if those would be many. */
function logTicks(low: number, high: number): [number, string][] {
  const powers = Array.from({ length: Math.ceil(Math.log10(high / low)) + 2 }, (_, index) => 10 ** (Math.floor(Math.log10(low)) + index));
  const factors = powers.length > 4 ? [1] : [1, 2, 5];
  return powers.flatMap((power) => factors.map((factor): [number, string] => [factor * power, tidy(factor * power)])).filter(([at]) => at >= low && at <= high);
}

const tidy = (value: number): string => Number(value.toPrecision(6)).toLocaleString("en", { maximumFractionDigits: 3 });
const round = (value: number): number => Math.round(value * 10) / 10;
