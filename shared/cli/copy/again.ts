/** Standard input for a call that a server may refuse before it has read it: then the same bytes are sent once more. */
import { CliError } from "../failures.ts";

/** What a server that is far away may have been sent before its refusal comes. */
const keptBytesMax = 16 * 1024 * 1024;

const tooLate = (): CliError => new CliError("the server refuses more calls for now, and too much of standard input has been read to begin again; try again");

export class Again {
  readonly #source: AsyncIterator<Uint8Array>;
  /** What has been read, as far as it is still needed; empty places have been given up. */
  readonly #pieces: (Uint8Array | undefined)[] = [];
  #keptBytes = 0;
  #isKept = true;
  #isOver = false;
  #reading: Promise<void> | undefined;

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  /** All bytes from the first on. @throws {CliError} when too many have been read meanwhile */
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

  /** Reads one piece, for all who wait for it: one that has left may have been waiting for it as well. */
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
