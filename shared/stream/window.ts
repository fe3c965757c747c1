/** What is counted of each direction of a stream: frames, so that none is lost, and bytes, so that none piles up. */
import { SandgateError } from "../errors.ts";
import { Condition, StallClock } from "../waiting.ts";

/** Frames have not arrived. */
export class FramesLost extends SandgateError {
  constructor(detail: string) {
    super("unavailable", `part of the stream was lost (${detail})`);
  }
}

/** What goes out: as much as the other end has room for. */
export class SendWindow {
  readonly #room = new Condition();
  readonly #stall: StallClock | undefined;
  #frames = 0;
  #bytes = 0;
  #creditBytes: number;

  /** @param onStall called when the other end has made no room for `stallMs` while somebody waits for it */
  constructor(creditBytes: number, stallMs: number | undefined, onStall: () => void) {
    this.#creditBytes = creditBytes;
    if (stallMs !== undefined) this.#stall = new StallClock(stallMs, onStall);
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** The number of the next frame. */
  count(bytes: number): number {
    this.#bytes += bytes;
    return this.#frames++;
  }

  /** The other end takes so many bytes in all. */
  grant(totalBytes: number): void {
    this.#creditBytes = Math.max(this.#creditBytes, totalBytes);
    this.#room.notify();
  }

  /** Resolves when there is room, or none will ever be. */
  async room(isBroken: () => boolean): Promise<void> {
    const hasRoom = (): boolean => isBroken() || this.#bytes < this.#creditBytes;
    if (hasRoom()) return;
    const waiting = this.#room.until(hasRoom);
    await (this.#stall?.during(waiting) ?? waiting);
  }

  /** Whoever waits for room looks whether the stream is broken. */
  wake(): void {
    this.#room.notify();
  }
}

/** What comes in: numbered without a hole, and granted room for as it is read. */
export class ReceiveWindow {
  /** Bytes that may wait to be read, one frame of overshoot aside. */
  readonly windowBytes: number;
  #frames = 0;
  #bytes = 0;
  #readBytes = 0;
  #grantedBytes: number;

  /** @param grantedBytes what the sender knows to be granted already */
  constructor(windowBytes: number, grantedBytes: number) {
    this.windowBytes = windowBytes;
    this.#grantedBytes = grantedBytes;
  }

  /** A frame has come. @throws {FramesLost} */
  count(seq: number, bytes: number): void {
    if (seq !== this.#frames) throw new FramesLost(`expected frame ${this.#frames}, got ${seq}`);
    this.#frames++;
    this.#bytes += bytes;
  }

  /** The sender has sent everything. @throws {FramesLost} */
  checkEnd(bytes: number): void {
    if (bytes !== this.#bytes) throw new FramesLost(`expected ${bytes} bytes, got ${this.#bytes}`);
  }

  /** So much was read. @returns what is granted in all, where it is worth a message: when half of the window is free again */
  read(bytes: number): number | undefined {
    this.#readBytes += bytes;
    const grant = this.#readBytes + this.windowBytes;
    if (grant === this.#grantedBytes || grant - this.#grantedBytes < this.windowBytes / 2) return undefined;
    this.#grantedBytes = grant;
    return grant;
  }
}
