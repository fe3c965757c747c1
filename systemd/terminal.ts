/** What the person who typed `npm start` sees: plain lines, colour and a moving clock only on a terminal. */
import { styleText } from "node:util";

type Colour = "green" | "yellow" | "red" | "dim" | "bold" | "cyan";

/** Shows that a long task is alive. */
export interface Progress {
  /** Says what the task is doing now. */
  say(text: string): void;
}

const tickMs = { terminal: 1_000, file: 15_000 };

export class Terminal {
  readonly #out: NodeJS.WriteStream;
  #status = "";
  #asking = false;

  constructor(out: NodeJS.WriteStream) {
    this.#out = out;
    // A closed terminal or pipe must not end the supervisor before its parts are stopped.
    out.on("error", () => undefined);
  }

  paint(colour: Colour, text: string): string {
    return this.#out.isTTY ? styleText(colour, text) : text;
  }

  line(text = ""): void {
    this.#clearStatus();
    this.#out.write(`${text}\n`);
  }

  good(text: string): void {
    this.line(`${this.paint("green", "✓")} ${text}`);
  }

  warn(text: string): void {
    this.line(`${this.paint("yellow", "!")} ${text}`);
  }

  bad(text: string): void {
    this.line(`${this.paint("red", "✗")} ${text}`);
  }

  /** Runs a task with a clock: rewritten in place on a terminal, a line now and then elsewhere. */
  async task<T>(title: string, object: string, work: (progress: Progress) => Promise<T>): Promise<T> {
    const begun = Date.now();
    let doing = "";
    const show = () => this.#showStatus(`${title}… ${seconds(begun)} s${doing && ` (${doing})`}`);
    if (!this.#out.isTTY) this.line(`· ${title}: ${object}…`);
    const timer = setInterval(show, this.#out.isTTY ? tickMs.terminal : tickMs.file);
    try {
      const result = await work({
        say: (text) => {
          doing = text;
        },
      });
      this.good(`${title}: ${object} (${seconds(begun)} s)`);
      return result;
    } finally {
      clearInterval(timer);
      this.#clearStatus();
    }
  }

  /** Keeps the clock still while a program asks the person something. */
  async whileAsking<T>(ask: () => Promise<T>): Promise<T> {
    this.#clearStatus();
    this.#asking = true;
    return ask().finally(() => {
      this.#asking = false;
    });
  }

  #showStatus(text: string): void {
    if (this.#asking) return;
    if (!this.#out.isTTY) return this.line(`· ${text}`);
    this.#clearStatus();
    this.#status = text.slice(0, Math.max(20, (this.#out.columns || 80) - 3));
    this.#out.write(`· ${this.#status}`);
  }

  #clearStatus(): void {
    if (this.#status) this.#out.write("\r\u001b[K");
    this.#status = "";
  }
}

/** Lines of a table with aligned columns; colour may be put on afterwards because widths are computed here. */
export function alignColumns(rows: readonly (readonly string[])[]): string[] {
  const widths: number[] = [];
  for (const row of rows)
    row.forEach((cell, index) => {
      widths[index] = Math.max(widths[index] ?? 0, cell.length);
    });
  return rows.map((row) =>
    row
      .map((cell, index) => cell.padEnd(widths[index] ?? 0))
      .join("  ")
      .trimEnd(),
  );
}

function seconds(begunMs: number): number {
  return Math.round((Date.now() - begunMs) / 1_000);
}
