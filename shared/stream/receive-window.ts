/**
 * What a stream may be sent before it is read. All of it may wait in this process and on the bus, so a window begins small. It
 * grows while it is read fast, shrinks when it is not, and all windows together have a bound: who hardly reads costs little, and
 * thousands of them no more than a few that read.
 */
import { SandgateError } from "../errors.ts";
import { FramesLost } from "./window.ts";

/** Of a stream that has just begun or is read slowly. */
export const leastWindowBytes = 64 * 1024;
/** A window grows after so many times its size was read: buffers of the network take the first bytes also when nobody reads. */
const provenTimes = 8;
/** It grows when half of it was read so soon, and shrinks when that took so long. */
const fastMs = 250;
const slowMs = 1_000;

/** How far a sender may go beyond its credit: by a frame of each of the two who may write to a stream at the same time, which are 720 KiB at most. */
const beyondCreditBytes = 2 * 1024 * 1024;

/** What the windows of a process may have together beyond the least of each. */
export class WindowBudget {
  #leftBytes: number;

  constructor(bytesMax: number) {
    this.#leftBytes = bytesMax;
  }

  /** @returns whether there was so much left */
  take(bytes: number): boolean {
    if (bytes > this.#leftBytes) return false;
    this.#leftBytes -= bytes;
    return true;
  }

  giveBack(bytes: number): void {
    this.#leftBytes += bytes;
  }
}

/** Incoming data: numbered without gaps, with credit granted as it is read. */
export class ReceiveWindow {
  readonly #mostBytes: number;
  readonly #leastBytes: number;
  readonly #budget: WindowBudget;
  readonly #now: () => number;
  #windowBytes: number;
  #frames = 0;
  #bytes = 0;
  #readBytes = 0;
  #grantedBytes: number;
  #grantedAtMs: number;

  /**
   * @param mostBytes how large it may become; 0 if no bytes are read
   * @param isGranted whether the sender has credit for its first bytes
   * @param now milliseconds of a clock that never goes back
   */
  constructor(mostBytes: number, isGranted: boolean, budget: WindowBudget, now = () => performance.now()) {
    this.#mostBytes = mostBytes;
    this.#leastBytes = Math.min(leastWindowBytes, mostBytes);
    this.#windowBytes = this.#leastBytes;
    this.#grantedBytes = isGranted ? this.#leastBytes : 0;
    this.#budget = budget;
    this.#now = now;
    this.#grantedAtMs = now();
  }

  /** Bytes that may wait to be read, plus at most one frame. */
  get windowBytes(): number {
    return this.#windowBytes;
  }

  /**
   * Counts a received frame.
   *
   * @returns false for one that was received before: the sender did not know that, and has sent it again in another way.
   * @throws {FramesLost}; {SandgateError} `internal_error` if the sender does not keep to its credit
   */
  count(seq: number, bytes: number): boolean {
    if (seq > this.#frames) throw new FramesLost(`expected frame ${this.#frames}, got ${seq}`);
    if (seq < this.#frames) return false;
    this.#frames++;
    this.#bytes += bytes;
    const isTooMuch = this.#mostBytes > 0 && this.#bytes > this.#grantedBytes + beyondCreditBytes;
    if (isTooMuch) throw new SandgateError("internal_error", "the sender of a stream does not keep to its credit");
    return true;
  }

  /** Checks that everything sent has arrived. @throws {FramesLost} */
  checkEnd(bytes: number): void {
    if (bytes !== this.#bytes) throw new FramesLost(`expected ${bytes} bytes, got ${this.#bytes}`);
  }

  /** Counts bytes as read. @returns the new total credit if it is worth a message, that is, if half of the window is free again */
  read(bytes: number): number | undefined {
    this.#readBytes += bytes;
    if (!this.#isWorthIt()) return undefined;
    this.#adapt();
    if (!this.#isWorthIt()) return undefined;
    this.#grantedBytes = this.#readBytes + this.#windowBytes;
    return this.#grantedBytes;
  }

  /** The stream is over. */
  close(): void {
    this.#resize(this.#leastBytes);
  }

  #isWorthIt(): boolean {
    const more = this.#readBytes + this.#windowBytes - this.#grantedBytes;
    return more > 0 && more >= this.#windowBytes / 2;
  }

  #adapt(): void {
    const tookMs = this.#now() - this.#grantedAtMs;
    this.#grantedAtMs += tookMs;
    if (tookMs > slowMs) this.#resize(Math.max(this.#leastBytes, this.#windowBytes / 2));
    else if (tookMs <= fastMs && this.#readBytes >= provenTimes * this.#windowBytes) this.#resize(Math.min(this.#mostBytes, 2 * this.#windowBytes));
  }

  #resize(bytes: number): void {
    const more = bytes - this.#windowBytes;
    if (more > 0 && !this.#budget.take(more)) return;
    if (more < 0) this.#budget.giveBack(-more);
    this.#windowBytes = bytes;
  }
}
