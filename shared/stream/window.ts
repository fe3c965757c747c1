/** The counters of each direction of a stream: frames, to detect losses, and bytes, to limit what is buffered. And what has arrived and waits to be read. */
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
    const hasRoom = (): boolean => isBroken() || this.#bytes < this.#creditBytes;
    if (hasRoom()) return;
    const waiting = this.#room.until(hasRoom);
    await (this.#stall?.during(waiting) ?? waiting);
  }

  /** Makes waiting senders check whether the stream is broken. */
  wake(): void {
    this.#room.notify();
  }
}

/** Incoming data: numbered without gaps, with credit granted as it is read. */
export class ReceiveWindow {
  /** Bytes that may wait to be read, plus at most one frame. */
  readonly windowBytes: number;
  #frames = 0;
  #bytes = 0;
  #readBytes = 0;
  #grantedBytes: number;

  /** @param grantedBytes the credit that the sender already has */
  constructor(windowBytes: number, grantedBytes: number) {
    this.windowBytes = windowBytes;
    this.#grantedBytes = grantedBytes;
  }

  /** Counts a received frame. @throws {FramesLost} */
  count(seq: number, bytes: number): void {
    if (seq !== this.#frames) throw new FramesLost(`expected frame ${this.#frames}, got ${seq}`);
    this.#frames++;
    this.#bytes += bytes;
  }

  /** Checks that everything sent has arrived. @throws {FramesLost} */
  checkEnd(bytes: number): void {
    if (bytes !== this.#bytes) throw new FramesLost(`expected ${bytes} bytes, got ${this.#bytes}`);
  }

  /** Counts bytes as read. @returns the new total credit if it is worth a message, that is, if half of the window is free again */
  read(bytes: number): number | undefined {
    this.#readBytes += bytes;
    const grant = this.#readBytes + this.windowBytes;
    if (grant === this.#grantedBytes || grant - this.#grantedBytes < this.windowBytes / 2) return undefined;
    this.#grantedBytes = grant;
    return grant;
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
