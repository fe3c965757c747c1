/** What a command prints, in the page: text only, its last part only, following its end unless somebody scrolled up. */
import { h } from "../../dom.ts";

type Stream = "stdout" | "stderr";

/** Characters kept in the page. */
const charactersMax = 2 * 1024 * 1024;
const flushMs = 40;
const waitingMax = 512 * 1024;
const pieceMax = 16 * 1024;
const nearEndPx = 24;

export class Output {
  readonly element: HTMLElement;
  readonly #text = h("pre", { class: "output-text", tabindex: 0, "aria-label": "Output" });
  readonly #cut = h("p", { class: "output-cut", hidden: true }, "Earlier output is not shown any more.");
  #waiting: { stream: Stream; text: string }[] = [];
  #waitingSize = 0;
  #size = 0;
  #flushed: PromiseWithResolvers<void> | undefined;

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
      setTimeout(() => this.flush(), flushMs);
    }
    return this.#waitingSize > waitingMax ? this.#flushed.promise : undefined;
  }

  flush(): void {
    const follows = this.#text.scrollHeight - this.#text.scrollTop - this.#text.clientHeight < nearEndPx;
    for (const { stream, text } of this.#waiting) this.#append(stream, text);
    this.#waiting = [];
    this.#waitingSize = 0;
    this.#trim();
    if (follows) this.#text.scrollTop = this.#text.scrollHeight;
    this.#flushed?.resolve();
    this.#flushed = undefined;
  }

  #append(stream: Stream, text: string): void {
    const last = this.#text.lastElementChild;
    const node = last?.firstChild;
    if (last?.className === stream && node instanceof Text && node.length < pieceMax) node.appendData(text);
    else this.#text.append(h("span", { class: stream }, text));
    this.#size += text.length;
  }

  #trim(): void {
    while (this.#size > charactersMax && this.#text.firstElementChild !== this.#text.lastElementChild) {
      this.#size -= this.#text.firstElementChild?.textContent?.length ?? 0;
      this.#text.firstElementChild?.remove();
      this.#cut.hidden = false;
    }
  }
}
