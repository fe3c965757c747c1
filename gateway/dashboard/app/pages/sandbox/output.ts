/** What a command prints, in the page: text only, its last part only, following its end unless somebody scrolled up. */
import { h } from "../../dom.ts";

type Stream = "stdout" | "stderr";

/** Characters kept in the page. */
const charactersMax = 2 * 1024 * 1024;
const flushMs = 40;
const waitingMax = 512 * 1024;
const blockMax = 16 * 1024;
/** A line may go beyond its block's end, but not for ever. */
const lineMax = 4 * blockMax;
const nearEndPx = 24;

interface Block {
  readonly element: Element;
  size: number;
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

  constructor() {
    this.element = h("div", { class: "output" }, this.#cut, this.#text);
  }

  get isEmpty(): boolean {
    return this.#size + this.#waitingSize === 0;
  }

  /** Adds text soon, many pieces at once. Resolves later when more is waiting than the page should hold. */
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
    const follows = this.#text.scrollHeight - this.#text.scrollTop - this.#text.clientHeight < nearEndPx;
    for (const { stream, text } of this.#waiting) this.#append(stream, text);
    this.#waiting = [];
    this.#waitingSize = 0;
    this.#trim();
    if (follows) this.#text.scrollTop = this.#text.scrollHeight;
    this.#flushed?.resolve();
    this.#flushed = undefined;
    // A page that is busy drawing gets time for everything else.
    this.#waitMs = Math.max(flushMs, 2 * (performance.now() - begun));
  }

  /** Blocks end where a line ends, so that the browser lays out only those that are in view. */
  #append(stream: Stream, text: string): void {
    this.#size += text.length;
    for (let at = 0; at < text.length; ) {
      const block = this.#block();
      const lineEnd = text.indexOf("\n", at + Math.max(0, blockMax - block.size)) + 1 || text.length;
      const end = Math.min(lineEnd, at + lineMax - block.size);
      appendTo(block.element, stream, text.slice(at, end));
      block.size += end - at;
      block.endsLine = text[end - 1] === "\n";
      at = end;
    }
  }

  /** The last block, or a new one when that is full. */
  #block(): Block {
    const last = this.#last;
    if (last && last.size < (last.endsLine ? blockMax : lineMax)) return last;
    this.#last = { element: h("div", { class: "output-block" }), size: 0, endsLine: true };
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

function appendTo(block: Element, stream: Stream, text: string): void {
  const last = block.lastElementChild;
  const node = last?.firstChild;
  if (last?.className === stream && node instanceof Text) node.appendData(text);
  else block.append(h("span", { class: stream }, text));
}
