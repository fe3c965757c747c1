/** Reads a file of a control group that the kernel adds up when it is read, only when it may have changed. */

/** Parts of a sum may change places without changing the sum. */
const freshMs = 10_000;

export class MemoryStat {
  readonly #read: () => string;
  #text = "";
  #used: number | undefined;
  #readAtMs = Number.NEGATIVE_INFINITY;

  constructor(read: () => string) {
    this.#read = read;
  }

  /** @param used the bytes that the group uses, of which the file tells the parts */
  text(used: number | undefined): string {
    if (used !== this.#used || performance.now() - this.#readAtMs > freshMs) {
      this.#text = this.#read();
      this.#used = used;
      this.#readAtMs = performance.now();
    }
    return this.#text;
  }
}
