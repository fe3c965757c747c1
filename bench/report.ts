/** The results, for people and for programs. */
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { alignColumns } from "../shared/util/columns.ts";
import type { Terminal } from "../systemd/base/terminal.ts";
import { computerText } from "./computer.ts";
import type { Machine } from "./machine.ts";
import { precise } from "./precise.ts";
import { own, type Row, rowBy, speedAgainst } from "./rows.ts";
import { isTight } from "./statistics.ts";
import type { Verdict } from "./targets.ts";

export interface Report {
  readonly startedAt: string;
  readonly durationS: number;
  /** Of the order in which contenders took their turns. */
  readonly seed: number;
  readonly machine: Machine;
  readonly rows: readonly Row[];
  readonly targets: readonly Verdict[];
}

export const headings = ["task", "by", "n", "p50 ms", "p95 ms", "p99 ms", "per second, or use", "Sandgate is"];
/** Number of left-aligned columns. */
export const leftAligned = 2;

export function printReport(terminal: Terminal, { machine, rows, targets, durationS, seed }: Report): void {
  terminal.line();
  terminal.line(computerText(machine));
  terminal.line(`podman ${machine.podman}, ${machine.runtime}, Node.js ${machine.node}, HTTP load by ${machine.load}`);
  terminal.line();
  const lines = alignColumns([headings, ...rows.map((row, index) => cells(row, rows, rows[index - 1]?.task !== row.task))], leftAligned);
  for (const [index, line] of lines.entries()) terminal.line(index === 0 ? terminal.paint("bold", line) : line);
  terminal.line();
  for (const { target, measured, met } of targets) {
    if (met) terminal.good(`${target}: ${measured}, met`);
    else terminal.bad(`${target}: ${measured}, not met`);
  }
  terminal.line(`${certaintyOf(rows)} Measured in ${Math.round(durationS)} s; the order of turns was that of --seed ${seed}.`.trimStart());
}

export function writeReport(file: string, report: Report): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `${JSON.stringify(report, undefined, 2)}\n`);
}

/** How many ratios are known well. */
export function certaintyOf(rows: readonly Row[]): string {
  const speeds = rows.flatMap(({ speed }) => speed ?? []);
  const tight = speeds.filter((speed) => speed !== "too few rounds" && isTight(speed));
  return speeds.length === 0 ? "" : `${tight.length} of ${speeds.length} ratios are known within a tenth.`;
}

/** One row as texts. @param isFirst whether it is the first of its task, whose name it shows */
export function cells(row: Row, rows: readonly Row[], isFirst: boolean): string[] {
  const ours = rowBy(rows, row.task, own);
  const compared = ours && row.contender !== own && !row.use ? speedText(ours, row) : "";
  const use = row.use ? `${precise(row.use.value)} ${row.use.unit}` : "";
  const rate = row.rate ? `${Math.round(row.rate.value).toLocaleString("en")} ${row.rate.unit.replace("/s", "")}` : use;
  return [isFirst ? row.task : "", row.contender, row.n.toLocaleString("en"), precise(row.p50), precise(row.p95), precise(row.p99), rate, compared];
}

/** How many times as fast, with its range where that is too wide to be sure of two figures. */
function speedText(ours: Row, row: Row): string {
  const text = `${precise(speedAgainst(ours, row))} times as fast`;
  if (row.speed === "too few rounds") return `${text} (${row.speed} to be sure)`;
  return !row.speed || isTight(row.speed) ? text : `${text} (between ${precise(row.speed.low)} and ${precise(row.speed.high)})`;
}
