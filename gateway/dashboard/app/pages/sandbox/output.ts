/** Shows a command's output as plain text. Keeps only the last part, and follows the end unless the user has scrolled up. */
import { h } from "../../dom.ts";

type Stream = "stdout" | "stderr";

/** The most characters kept in the page. */
const charactersMax = 2 * 1024 * 1024;
const flushMs = 40;
const waitingMax = 512 * 1024;
const blockMax = 16 * 1024;
/** A line may extend beyond its block's size, but only up to this. */
const lineMax = 4 * blockMax;
const nearEndPx = 24;

interface Block {
  readonly element: HTMLElement;
  size: number;
  lines: number;
  endsLine: boolean;
}

export class Output {
  readonly element: HTMLElement;
  readonly #text = h("pre", { class: "output-text", tabindex: 0, "aria-label": "Output" });
  readonly #cut = h("p", { class: "output-cut", hidden: true }, "Earlier output is not shown any more.");
  #waiting: { stream: Stream; text: string }[] = [];
  #waitingSize = 0;
  #size = 0;
  #flushed: PromiseWithResolvers<void> | undefined;
  #waitMs = flushMs;
  #last: Block | undefined;
  /** Whether the end stays in view. Cleared by scrolling up, set again by reaching the end. */
  #follows = true;
  #scrolledTo = 0;
  #lineHeight = 0;

  constructor() {
    this.element = h("div", "output", this.#cut, this.#text);
    this.#text.addEventListener("scroll", () => {
      const { scrollTop, scrollHeight, clientHeight } = this.#text;
      if (scrollHeight - clientHeight - scrollTop < nearEndPx) this.#follows = true;
      else if (scrollTop < this.#scrolledTo - nearEndPx) this.#follows = false;
    });
  }

  get isEmpty(): boolean {
    return this.#size + this.#waitingSize === 0;
  }

  /** Queues text for the next flush. Returns a promise for that flush when too much is waiting. */
  add(stream: Stream, text: string): Promise<void> | undefined {
    this.#waiting.push({ stream, text });
    this.#waitingSize += text.length;
    if (!this.#flushed) {
      this.#flushed = Promise.withResolvers<void>();
      setTimeout(() => this.flush(), this.#waitMs);
    }
    return this.#waitingSize > waitingMax ? this.#flushed.promise : undefined;
  }

  flush(): void {
    const begun = performance.now();
    this.#lineHeight ||= Number.parseFloat(getComputedStyle(this.#text).lineHeight) || 0;
    for (const { stream, text } of this.#waiting) this.#append(stream, text);
    this.#waiting = [];
    this.#waitingSize = 0;
    this.#trim();
    this.#showEnd();
    // Blocks that came into view may be taller than estimated from their number of lines.
    requestAnimationFrame(() => this.#showEnd());
    this.#flushed?.resolve();
    this.#flushed = undefined;
    // Leaves a busy page time for everything else.
    this.#waitMs = Math.max(flushMs, 2 * (performance.now() - begun));
  }

  /** Appends text in blocks that end at line ends, so that the browser lays out only the visible ones. */
  #append(stream: Stream, text: string): void {
    this.#size += text.length;
    for (let at = 0; at < text.length; ) {
      const block = this.#block();
      const lineEnd = text.indexOf("\n", at + Math.max(0, blockMax - block.size)) + 1 || text.length;
      const end = Math.min(lineEnd, at + lineMax - block.size);
      appendTo(block.element, stream, text.slice(at, end));
      block.size += end - at;
      block.endsLine = text[end - 1] === "\n";
      block.lines += linesIn(text, at, end);
      block.element.style.setProperty("contain-intrinsic-block-size", `auto ${block.lines * this.#lineHeight}px`);
      at = end;
    }
  }

  #showEnd(): void {
    if (!this.#follows) return;
    this.#text.scrollTop = this.#text.scrollHeight;
    this.#scrolledTo = this.#text.scrollTop;
  }

  /** The last block, or a new one if it is full. */
  #block(): Block {
    const last = this.#last;
    if (last && last.size < (last.endsLine ? blockMax : lineMax)) return last;
    this.#last = { element: h("div", "output-block"), size: 0, lines: 0, endsLine: true };
    this.#text.append(this.#last.element);
    return this.#last;
  }

  #trim(): void {
    while (this.#size > charactersMax && this.#text.firstElementChild !== this.#text.lastElementChild) {
      this.#size -= this.#text.firstElementChild?.textContent?.length ?? 0;
      this.#text.firstElementChild?.remove();
      this.#cut.hidden = false;
    }
  }
}

function linesIn(text: string, from: number, to: number): number {
  let lines = 0;
  for (let at = text.indexOf("\n", from); at !== -1 && at < to; at = text.indexOf("\n", at + 1)) lines += 1;
  return lines;
}

function appendTo(block: Element, stream: Stream, text: string): void {
  const last = block.lastElementChild;
  const node = last?.firstChild;
  if (last?.className === stream && node instanceof Text) node.appendData(text);
  else block.append(h("span", { class: stream }, text));
}
