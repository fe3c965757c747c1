/** The output of `npm start`: plain lines, with color and a running clock only on a terminal. */
import { styleText } from "node:util";

type Colour = "green" | "yellow" | "red" | "dim" | "bold" | "cyan";

/** Shows that a long task is alive. */
export interface Progress {
  /** Shows what the task is doing now. */
  say(text: string): void;
}

/** The escape sequences that `paint` produces. No other text may contain any. */
const painted = new RegExp(`(${["green", "yellow", "red", "dim", "bold", "cyan"].flatMap((colour) => sequencesOf(colour as Colour)).join("|")})`);
/** C0 except tab and line break, DEL, C1, line separators, and characters that change the writing direction. */
const controls = /[\p{Cc}\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

const tickMs = { terminal: 1_000, file: 15_000 };

/** Makes untrusted text safe to show: characters that a terminal would obey are escaped, as in `\\x1b`. */
export function visible(text: string): string {
  return text.replace(controls, (character) => {
    if (character === "\n" || character === "\t") return character;
    const code = character.charCodeAt(0);
    return code < 0x100 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
  });
}

function sequencesOf(colour: Colour): string[] {
  const escaped = (text: string) => text.replace(/[[\]]/g, "\\$&");
  return styleText(colour, "|", { validateStream: false }).split("|").map(escaped);
}

export class Terminal {
  readonly #out: NodeJS.WriteStream;
  #status = "";
  #asking = false;

  constructor(out: NodeJS.WriteStream) {
    this.#out = out;
    // A closed terminal or pipe must not end the supervisor before it has stopped its parts.
    out.on("error", () => undefined);
  }

  paint(colour: Colour, text: string): string {
    const shown = visible(text);
    return this.#out.isTTY ? styleText(colour, shown) : shown;
  }

  /** Prints a line, parts of which may be painted. */
  line(text = ""): void {
    this.#clearStatus();
    const parts = text.split(painted);
    this.#out.write(`${parts.map((part, index) => (index % 2 === 0 ? visible(part) : part)).join("")}\n`);
  }

  good(text: string): void {
    this.line(`${this.paint("green", "✓")} ${visible(text)}`);
  }

  warn(text: string): void {
    this.line(`${this.paint("yellow", "!")} ${visible(text)}`);
  }

  bad(text: string): void {
    this.line(`${this.paint("red", "✗")} ${visible(text)}`);
  }

  /** Runs a task and shows its elapsed time: updated in place on a terminal, an occasional line elsewhere. */
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

  /** Pauses the clock while a program prompts the user. */
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
    this.#status = visible(text)
      .replaceAll("\n", " ")
      .slice(0, Math.max(20, (this.#out.columns || 80) - 3));
    this.#out.write(`· ${this.#status}`);
  }

  #clearStatus(): void {
    if (this.#status) this.#out.write("\r\u001b[K");
    this.#status = "";
  }
}

function seconds(begunMs: number): number {
  return Math.round((Date.now() - begunMs) / 1_000);
}
