/** What a stream may send: counted in frames, to detect losses, and in bytes, within the credit. And what has arrived and waits to be read. */
import { SandgateError } from "../errors.ts";
import { Condition, StallClock } from "../waiting.ts";

/** Frames have been lost. */
export class FramesLost extends SandgateError {
  constructor(detail: string) {
    super("unavailable", `part of the stream was lost (${detail})`);
  }
}

/** Outgoing data: limited by the credit that the other end has granted. */
export class SendWindow {
  readonly #room = new Condition();
  readonly #stall: StallClock | undefined;
  #frames = 0;
  #bytes = 0;
  #creditBytes: number;

  /** @param onStall called when a sender has waited for room and the other end has granted none for `stallMs` */
  constructor(creditBytes: number, stallMs: number | undefined, onStall: () => void) {
    this.#creditBytes = creditBytes;
    if (stallMs !== undefined) this.#stall = new StallClock(stallMs, onStall);
  }

  get bytes(): number {
    return this.#bytes;
  }

  get roomBytes(): number {
    return Math.max(0, this.#creditBytes - this.#bytes);
  }

  /** Counts a frame. @returns its number */
  count(bytes: number): number {
    this.#bytes += bytes;
    return this.#frames++;
  }

  /** Raises the credit to this total number of bytes. */
  grant(totalBytes: number): void {
    this.#creditBytes = Math.max(this.#creditBytes, totalBytes);
    this.#room.notify();
  }

  /** Resolves when there is room, or the stream is broken. */
  async room(isBroken: () => boolean): Promise<void> {
    const hasRoom = (): boolean => isBroken() || this.roomBytes > 0;
    if (hasRoom()) return;
    const waiting = this.#room.until(hasRoom);
    await (this.#stall?.during(waiting) ?? waiting);
  }

  /** Makes waiting senders check whether the stream is broken. */
  wake(): void {
    this.#room.notify();
  }
}

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
