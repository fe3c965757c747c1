/** What commands print: tables for people, the API's JSON for programs. */
import { styleText } from "node:util";
import { alignColumns } from "../terminal.ts";

type Style = "bold" | "dim" | "red" | "yellow";

/** One line of a table; the style is for all of it. */
export interface Row {
  readonly cells: readonly (string | number | null)[];
  readonly style?: Style | undefined;
}

export class Output {
  readonly isJson: boolean;
  readonly #out: NodeJS.WriteStream;

  constructor(out: NodeJS.WriteStream, isJson: boolean) {
    this.#out = out;
    this.isJson = isJson;
  }

  /** The answer of the API as it is, or else what `print` makes of it. */
  show(answer: unknown, print: () => void): void {
    if (this.isJson) this.line(JSON.stringify(answer, null, 2));
    else print();
  }

  line(text = ""): void {
    this.#out.write(`${text}\n`);
  }

  /** A line for people. */
  say(text: string): void {
    this.line(clean(text));
  }

  /** Columns of equal width below their titles; `none` is said of an empty table. */
  table(titles: readonly string[], rows: readonly Row[], none: string): void {
    if (rows.length === 0) return this.line(none);
    const lines = alignColumns([titles, ...rows.map(({ cells }) => cells.map((cell) => clean(String(cell ?? "-"))))]);
    lines.forEach((text, index) => this.line(this.#paint(index === 0 ? "bold" : rows[index - 1]?.style, text)));
  }

  /** Names and values below each other. */
  pairs(pairs: readonly (readonly [string, string | number | null])[]): void {
    for (const text of alignColumns(pairs.map(([name, value]) => [name, clean(String(value ?? "-"))]))) this.line(text);
  }

  #paint(style: Style | undefined, text: string): string {
    return style && this.#out.isTTY && !process.env.NO_COLOR ? styleText(style, text) : text;
  }
}

/** Names come from strangers: no control character of theirs may reach the terminal. */
function clean(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, "\ufffd");
}

const units = [
  ["d", 86_400],
  ["h", 3_600],
  ["min", 60],
] as const;
const agoMaxS = 30 * 86_400;

/** An ISO time as people read it in a list: how long ago, or the day when that was long ago. */
export function ago(time: string | null, now = Date.now()): string {
  if (time === null) return "never";
  const seconds = (now - Date.parse(time)) / 1_000;
  if (seconds > agoMaxS) return time.slice(0, 10);
  const unit = units.find(([, size]) => seconds >= size);
  return unit ? `${Math.floor(seconds / unit[1])} ${unit[0]} ago` : "just now";
}

/** Bytes as people read them, where they are some hundred millions. */
export function mebibytes(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(1)} MiB`;
}

/** Bytes as people read them. */
export function gibibytes(bytes: number): string {
  return `${(bytes / 2 ** 30).toFixed(1)} GiB`;
}
