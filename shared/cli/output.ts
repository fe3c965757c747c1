/** What commands print: tables for people, the API's JSON for programs. Messages go to standard error. */
import { wantsColour } from "./surroundings.ts";

export class Output {
  readonly isJson: boolean;

  constructor(isJson: boolean) {
    this.isJson = isJson;
  }

  /** The answer of the API, or else what `print` makes of it. */
  show(answer: unknown, print: () => void): void {
    if (this.isJson) this.line(JSON.stringify(answer, null, 2));
    else print();
  }

  line(text: string): void {
    process.stdout.write(`${text}\n`);
  }

  /** Columns of equal width below their titles. */
  table(titles: readonly string[], rows: readonly (readonly (string | number | null | undefined)[])[]): void {
    const lines = aligned([titles, ...rows.map((row) => row.map((cell) => clean(String(cell ?? "-"))))]);
    lines.forEach((text, index) => this.line(index === 0 && wantsColour(process.stdout) ? `\u001b[1m${text}\u001b[22m` : text));
  }
}

/** A line for the person. */
export function say(text: string): void {
  process.stderr.write(`${clean(text)}\n`);
}

/** Names come from strangers: no control character of theirs may reach the terminal. */
export function clean(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (character) => (character === "\n" ? character : "\ufffd"));
}

/** One line of a table cell. */
export function oneLine(text: string, max = 60): string {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > max ? `${line.slice(0, max - 1)}…` : line;
}

function aligned(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("  ")
      .trimEnd(),
  );
}

const spans = [
  ["d", 86_400],
  ["h", 3_600],
  ["min", 60],
] as const;

/** An ISO time as people read it in a list. */
export function ago(time: string): string {
  const seconds = (Date.now() - Date.parse(time)) / 1_000;
  const unit = spans.find(([, size]) => seconds >= size);
  return unit ? `${Math.floor(seconds / unit[1])} ${unit[0]} ago` : "just now";
}

const spanUnits = [
  ["hour", 3_600],
  ["minute", 60],
  ["second", 1],
] as const;

/** Seconds as people say them. */
export function span(seconds: number): string {
  const [unit, size] = spanUnits.find(([, one]) => seconds >= one && seconds % one === 0) ?? ["second", 1];
  const count = seconds / size;
  return `${count} ${unit}${count === 1 ? "" : "s"}`;
}

const sizes = ["B", "KiB", "MiB", "GiB", "TiB"] as const;

/** Bytes as people read them. */
export function bytesText(bytes: number): string {
  const step = Math.min(sizes.length - 1, bytes > 0 ? Math.floor(Math.log2(bytes) / 10) : 0);
  return `${step === 0 ? bytes : (bytes / 1_024 ** step).toFixed(1)} ${sizes[step]}`;
}
