/** Output that has come and was not read yet. The server sends no more than its window beyond what was read. */

import { type Deferred, deferred } from "../waiting.ts";
import type { SessionOutput } from "./session.ts";

type End = { readonly error?: unknown };

export class Output {
  readonly #waiting: SessionOutput[] = [];
  #end: End | undefined;
  #news: Deferred<void> | undefined;

  add(output: SessionOutput): void {
    this.#waiting.push(output);
    this.#wake();
  }

  get isEmpty(): boolean {
    return this.#waiting.length === 0;
  }

  /** No more will come. */
  end(end: End): void {
    this.#end ??= end;
    this.#wake();
  }

  /** The next piece; undefined at the end. @throws the error that ended it */
  async next(): Promise<SessionOutput | undefined> {
    for (;;) {
      const output = this.#waiting.shift();
      if (output) return output;
      if (this.#end && "error" in this.#end) throw this.#end.error;
      if (this.#end) return undefined;
      this.#news ??= deferred();
      await this.#news.promise;
    }
  }

  #wake(): void {
    this.#news?.resolve();
    this.#news = undefined;
  }
}
