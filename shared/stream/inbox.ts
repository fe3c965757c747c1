/** Items that have arrived on a stream and wait to be read. */
import type { SandgateError } from "../errors.ts";
import { Condition } from "../waiting.ts";

/** Receives everything that arrives on a stream, in order. */
export interface StreamListener {
  bytes(payload: Uint8Array): void;
  message(message: unknown): void;
  /** The other end has sent everything. */
  ended(summary: unknown): void;
  /** The stream broke, so nothing more arrives. Called even if this end broke it itself. */
  broken(error: SandgateError): void;
}

type Item = { kind: "bytes"; payload: Uint8Array } | { kind: "ended"; summary: unknown } | { kind: "broken"; error: SandgateError };

/** Queues items for a reader. Its size is bounded by the window granted to the other end. */
export class Inbox implements StreamListener {
  readonly #items: Item[] = [];
  readonly #arrival = new Condition();

  /** The first unread item, once there is one. */
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
    // Readers of bytes do not receive messages.
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
