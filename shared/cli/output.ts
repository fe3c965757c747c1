/** The output of commands: tables for people, the API's JSON for programs. Messages go to standard error. */

import { once } from "node:events";
import { alignColumns } from "../util/columns.ts";
import { wantsColour } from "./settings.ts";

type Style = "bold" | "dim" | "red" | "yellow";
type Cell = string | number | null | undefined;

/** One row of a table; the style applies to the whole row. */
export type Row = readonly Cell[] | { readonly cells: readonly Cell[]; readonly style?: Style | undefined };

const styles: Readonly<Record<Style, readonly [on: number, off: number]>> = { bold: [1, 22], dim: [2, 22], red: [31, 39], yellow: [33, 39] };

export class Output {
  readonly isJson: boolean;

  constructor(isJson: boolean) {
    this.isJson = isJson;
  }

  /** Prints the API's answer as JSON, or else calls `print`. */
  show(answer: unknown, print: () => void): void {
    if (this.isJson) this.line(JSON.stringify(answer, null, 2));
    else print();
  }

  /** Prints a whole list; as JSON, in the form of one page of the API. */
  list(data: readonly unknown[], print: () => void): void {
    this.show({ data, pagination: { page: 1, page_size: data.length, total_items: data.length, total_pages: data.length > 0 ? 1 : 0 } }, print);
  }

  /** Prints a line unchanged. */
  line(text = ""): void {
    process.stdout.write(`${text}\n`);
  }

  /** Prints a line for people. */
  text(text: string): void {
    this.line(clean(text));
  }

  /** Prints aligned columns below their titles. @param none printed instead of an empty table */
  table(titles: readonly string[], rows: readonly Row[], none?: string): void {
    if (rows.length === 0 && none !== undefined) return this.line(none);
    const all = rows.map((row) => ("cells" in row ? row : { cells: row, style: undefined }));
    const lines = alignColumns([titles, ...all.map(({ cells }) => cells.map(cellText))]);
    lines.forEach((text, index) => this.line(painted(index === 0 ? "bold" : all[index - 1]?.style, text)));
  }

  /** Prints names and values, one pair per line. */
  pairs(pairs: readonly (readonly [string, Cell])[]): void {
    for (const text of alignColumns(pairs.map(([name, value]) => [name, cellText(value)]))) this.line(text);
  }
}

const cellText = (cell: Cell): string => clean(String(cell ?? "-")).replaceAll("\n", "\ufffd");

function painted(style: Style | undefined, text: string): string {
  if (!style || !wantsColour(process.stdout)) return text;
  const [on, off] = styles[style];
  return `\u001b[${on}m${text}\u001b[${off}m`;
}

/** Prints a message for the user on standard error. */
export function say(text: string): void {
  process.stderr.write(`${clean(text)}\n`);
}

/** Removes control characters, because names come from strangers and must not control the terminal. */
export function clean(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (character) => (character === "\n" ? character : "\ufffd"));
}

/** A text as one line of a table cell. */
export function oneLine(text: string, max = 60): string {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > max ? `${line.slice(0, max - 1)}…` : line;
}

const spans = [
  ["d", 86_400],
  ["h", 3_600],
  ["min", 60],
] as const;
const agoMaxS = 30 * 86_400;

/** An ISO time as people read it in a list: how long ago, or the date if that is long ago. */
export function ago(time: string | null): string {
  if (time === null) return "never";
  const seconds = (Date.now() - Date.parse(time)) / 1_000;
  if (seconds > agoMaxS) return time.slice(0, 10);
  const unit = spans.find(([, size]) => seconds >= size);
  return unit ? `${Math.floor(seconds / unit[1])} ${unit[0]} ago` : "just now";
}

const spanUnits = [
  ["hour", 3_600],
  ["minute", 60],
  ["second", 1],
] as const;

/** Seconds in words. */
export function span(seconds: number): string {
  const [unit, size] = spanUnits.find(([, one]) => seconds >= one && seconds % one === 0) ?? ["second", 1];
  const count = seconds / size;
  return `${count} ${unit}${count === 1 ? "" : "s"}`;
}

const sizes = ["B", "KiB", "MiB", "GiB", "TiB"] as const;

/** Bytes in words. */
export function bytesText(bytes: number): string {
  const step = Math.min(sizes.length - 1, bytes > 0 ? Math.floor(Math.log2(bytes) / 10) : 0);
  return `${step === 0 ? bytes : (bytes / 1_024 ** step).toFixed(1)} ${sizes[step]}`;
}

/** Resolves when there is room for more output. */
export async function print(out: NodeJS.WriteStream, data: string | Uint8Array): Promise<void> {
  if (out.write(data) || out.destroyed) return;
  const settled = new AbortController();
  const how = { signal: settled.signal };
  await Promise.race([once(out, "drain", how), once(out, "close", how)]).finally(() => settled.abort());
}
