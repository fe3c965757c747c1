/** What has come on a stream and waits to be read. */
import type { SandgateError } from "../errors.ts";
import { Condition } from "../waiting.ts";

/** Hears everything that comes on a stream, in order. */
export interface StreamListener {
  bytes(payload: Uint8Array): void;
  message(message: unknown): void;
  /** The other end has sent everything. */
  ended(summary: unknown): void;
  /** Nothing more comes. Of an end that breaks the stream itself, its own listener hears as well. */
  broken(error: SandgateError): void;
}

type Item = { kind: "bytes"; payload: Uint8Array } | { kind: "ended"; summary: unknown } | { kind: "broken"; error: SandgateError };

/** What nobody reads is bounded by the window that the other end was granted. */
export class Inbox implements StreamListener {
  readonly #items: Item[] = [];
  readonly #arrival = new Condition();

  /** The first that was not read yet, waiting for it. */
  async next(): Promise<Item> {
    if (this.#items.length === 0) await this.#arrival.until(() => this.#items.length > 0);
    return this.#items.shift() as Item;
  }

  clear(): void {
    this.#items.length = 0;
  }

  bytes(payload: Uint8Array): void {
    this.#put({ kind: "bytes", payload });
  }

  message(): void {
    // Whoever reads bytes is told nothing else.
  }

  ended(summary: unknown): void {
    this.#put({ kind: "ended", summary });
  }

  broken(error: SandgateError): void {
    this.#put({ kind: "broken", error });
  }

  #put(item: Item): void {
    this.#items.push(item);
    this.#arrival.notify();
  }
}
