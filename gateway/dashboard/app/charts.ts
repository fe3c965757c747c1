/** Small SVG charts, drawn at their actual width so that lines and text stay sharp. */
import { fill, h, svg, uniqueId } from "./dom.ts";

export interface Point {
  /** Milliseconds since the Unix epoch. */
  readonly at: number;
  readonly value: number;
  /** A second amount, stacked on the first in bar charts. */
  readonly extra?: number;
}

export interface ChartOptions {
  readonly title: string;
  readonly kind: "bars" | "line";
  /** Describes a point, for the reading in the chart's header. */
  readonly read: (point: Point) => string;
  readonly scale: (value: number) => string;
  /** The top of the scale is at least this. */
  readonly least: number;
  readonly ends: (at: number) => string;
  /** Shown in place of the chart when there are no points. */
  readonly empty: string;
}

export interface Chart {
  readonly element: HTMLElement;
  /** Points oldest first, and the period that the chart covers. */
  show(points: readonly Point[], from: number, to: number): void;
}

/** Points oldest first, and the period that the chart covers. */
interface Shown {
  readonly points: readonly Point[];
  readonly from: number;
  readonly to: number;
}

interface Frame {
  readonly width: number;
  readonly height: number;
  readonly x: (at: number) => number;
  readonly y: (value: number) => number;
}

const height = 132;
const margin = { top: 8, right: 2, bottom: 18, left: 48 };
/** Samples further apart than this multiple of the usual distance are drawn with a gap. */
const gapFactor = 6;

export function chart(options: ChartOptions): Chart {
  const id = uniqueId("chart");
  const reading = h("span", "chart-reading");
  const picture = svg("svg", { role: "img", "aria-labelledby": id, height, class: "chart-picture" });
  const head = h("figcaption", "chart-head", h("span", { id, class: "chart-title" }, options.title), reading);
  const element = h("figure", "chart card", head, h("div", "chart-frame", picture));
  const nothing = h("p", { class: "chart-empty", hidden: true }, options.empty);
  picture.after(nothing);
  let shown: Shown | undefined;
  let frame: Frame | undefined;
  const readLast = (): void => {
    const last = shown?.points.at(-1);
    reading.textContent = last ? options.read(last) : "";
  };
  const draw = (): void => {
    const width = picture.parentElement?.clientWidth ?? 0;
    const isEmpty = shown?.points.length === 0;
    nothing.hidden = !isEmpty;
    picture.toggleAttribute("hidden", isEmpty);
    if (width < 80 || !shown || isEmpty) return readLast();
    frame = drawChart(picture, options, shown, width);
    readLast();
  };
  new ResizeObserver(draw).observe(picture.parentElement as HTMLElement);
  picture.addEventListener("pointermove", (event) => {
    const point = frame && shown && nearest(shown.points, frame, event.clientX - picture.getBoundingClientRect().left);
    if (point && frame) pointAt(picture, frame, point, () => (reading.textContent = options.read(point)));
  });
  picture.addEventListener("pointerleave", () => {
    picture.querySelector(".cursor")?.remove();
    readLast();
  });
  return {
    element,
    show: (points, from, to) => {
      shown = { points, from, to };
      draw();
    },
  };
}

function drawChart(picture: SVGElement, options: ChartOptions, { points, from, to }: Shown, width: number): Frame {
  const top = niceTop(Math.max(options.least, ...points.map(({ value, extra = 0 }) => value + extra)));
  const inner = { width: width - margin.left - margin.right, height: height - margin.top - margin.bottom };
  const frame: Frame = {
    width,
    height,
    x: (at) => margin.left + ((at - from) / Math.max(1, to - from)) * inner.width,
    y: (value) => margin.top + (1 - value / top) * inner.height,
  };
  picture.setAttribute("width", String(width));
  picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
  fill(picture, ...scaleLines(frame, top, options.scale), ...timeLabels(frame, from, to, options.ends));
  picture.append(...(options.kind === "bars" ? bars(points, frame, (inner.width / Math.max(1, points.length)) * 0.72) : lines(points, frame)));
  return frame;
}

/** The top of the scale. Half of it must be a round number too, because it labels the middle line. */
function niceTop(value: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1)));
  const steps = power > 1 ? [1, 2, 3, 4, 5, 6, 8, 10] : [1, 2, 4, 6, 8, 10];
  return (steps.find((step) => step * power >= value) ?? 10) * power;
}

function scaleLines({ width, y }: Frame, top: number, scale: (value: number) => string): SVGElement[] {
  return [0, top / 2, top].flatMap((value) => [
    svg("line", { class: value === 0 ? "axis" : "grid", x1: margin.left, x2: width - margin.right, y1: y(value), y2: y(value) }),
    svg("text", { class: "tick", x: margin.left - 8, y: y(value) + 3.5, "text-anchor": "end" }, scale(value)),
  ]);
}

function timeLabels({ width }: Frame, from: number, to: number, words: (at: number) => string): SVGElement[] {
  const labels = [
    { x: margin.left, anchor: "start", at: from },
    { x: (margin.left + width - margin.right) / 2, anchor: "middle", at: (from + to) / 2 },
    { x: width - margin.right, anchor: "end", at: to },
  ];
  return labels.map(({ x, anchor, at }) => svg("text", { class: "tick", x, y: height - 4, "text-anchor": anchor }, words(at)));
}

function bars(points: readonly Point[], { x, y }: Frame, wide: number): SVGElement[] {
  const width = Math.max(1, Math.min(14, wide));
  const bar = (className: string, at: number, from: number, to: number): SVGElement =>
    svg("rect", { class: className, x: x(at) - width / 2, y: y(to), width, height: Math.max(0, y(from) - y(to)), rx: Math.min(1.5, width / 2) });
  return points.flatMap(({ at, value, extra = 0 }) => [
    ...(value > 0 ? [bar("bar", at, 0, value)] : []),
    ...(extra > 0 ? [bar("bar extra", at, value, value + extra)] : []),
  ]);
}

function lines(points: readonly Point[], { x, y }: Frame): SVGElement[] {
  return runs(points).flatMap((run) => {
    const path = run.map(({ at, value }, index) => `${index ? "L" : "M"}${x(at).toFixed(1)} ${y(value).toFixed(1)}`).join("");
    const [first, last] = [run[0], run.at(-1)];
    if (!first || !last) return [];
    if (run.length === 1) return [svg("circle", { class: "spot", cx: x(first.at), cy: y(first.value), r: 2 })];
    return [svg("path", { class: "area", d: `${path}L${x(last.at)} ${y(0)}L${x(first.at)} ${y(0)}Z` }), svg("path", { class: "line", d: path })];
  });
}

/** Splits points into runs without gaps. */
function runs(points: readonly Point[]): Point[][] {
  const gaps = points.slice(1).map(({ at }, index) => at - (points[index]?.at ?? at));
  const usual = gaps.toSorted((a, b) => a - b)[Math.floor(gaps.length / 2)] ?? 0;
  const found: Point[][] = [];
  for (const [index, point] of points.entries()) {
    if (index === 0 || (gaps[index - 1] ?? 0) > usual * gapFactor) found.push([]);
    found.at(-1)?.push(point);
  }
  return found;
}

function nearest(points: readonly Point[], { x }: Frame, position: number): Point | undefined {
  let best: Point | undefined;
  for (const point of points) if (!best || Math.abs(x(point.at) - position) < Math.abs(x(best.at) - position)) best = point;
  return best;
}

function pointAt(picture: SVGElement, { x }: Frame, point: Point, tell: () => void): void {
  picture.querySelector(".cursor")?.remove();
  picture.append(svg("line", { class: "cursor", x1: x(point.at), x2: x(point.at), y1: margin.top, y2: height - margin.bottom }));
  tell();
}
