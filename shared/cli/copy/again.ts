/** Standard input that can be sent twice, for a call that the server may refuse before it has read everything. */
import { CliError } from "../failures.ts";

/** How much may have been sent to a distant server before its refusal arrives. */
const keptBytesMax = 16 * 1024 * 1024;

const tooLate = (): CliError => new CliError("the server refuses more calls for now, and too much of standard input has been read to restart; try again");

export class Again {
  readonly #source: AsyncIterator<Uint8Array>;
  /** The pieces read so far; those no longer needed are undefined. */
  readonly #pieces: (Uint8Array | undefined)[] = [];
  #keptBytes = 0;
  #isKept = true;
  #isOver = false;
  #reading: Promise<void> | undefined;

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  /** All bytes from the start. @throws {CliError} if too many have been read meanwhile */
  async *read(): AsyncGenerator<Uint8Array> {
    if (!this.#isKept) throw tooLate();
    for (let at = 0; ; at++) {
      while (at >= this.#pieces.length && !this.#isOver) await this.#more();
      const piece = this.#pieces[at];
      if (piece === undefined && at < this.#pieces.length) throw tooLate();
      if (piece === undefined) return;
      if (!this.#isKept) this.#pieces[at] = undefined;
      yield piece;
    }
  }

  /** Reads one piece, shared by all readers: an abandoned reader may have requested it. */
  #more(): Promise<void> {
    this.#reading ??= this.#source
      .next()
      .then((next) => this.#take(next))
      .finally(() => {
        this.#reading = undefined;
      });
    return this.#reading;
  }

  #take({ done, value }: IteratorResult<Uint8Array>): void {
    if (done) {
      this.#isOver = true;
      return;
    }
    this.#pieces.push(value);
    this.#keptBytes += value.length;
    if (this.#isKept && this.#keptBytes > keptBytesMax) {
      this.#isKept = false;
      this.#pieces.fill(undefined, 0, -1);
    }
  }
}
