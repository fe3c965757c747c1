/** The most recent output of a session, both channels in the order in which they were read. */
import type { OutputFrame } from "../../shared/stream/session/frames.ts";
import type { OutputChannel } from "../../shared/stream/session/protocol.ts";

const firstBytes = 4 * 1024;
/** The most channel runs kept; a program that switches with every byte loses old output sooner. */
const runsMax = 16 * 1024;

/** Consecutive bytes of one channel. */
interface Run {
  readonly channel: OutputChannel;
  readonly from: number;
}

export class OutputRing {
  readonly #bytesMax: number;
  #buffer: Buffer;
  #runs: Run[] = [];
  /** Forgotten runs at the beginning; they are removed together once they exceed half of all. */
  #forgotten = 0;
  #start = 0;
  #end = 0;

  /** @param bytesMax the most output kept; memory is allocated as needed. */
  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
    this.#buffer = Buffer.allocUnsafeSlow(Math.min(firstBytes, bytesMax));
  }

  /** Offset of the first byte kept. */
  get start(): number {
    return this.#start;
  }

  /** Offset of the next byte. */
  get end(): number {
    return this.#end;
  }

  append(channel: OutputChannel, bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    if (this.#runs.at(-1)?.channel !== channel) this.#runs.push({ channel, from: this.#end });
    // Of a chunk larger than the ring, only the end is kept.
    const kept = bytes.subarray(Math.max(0, bytes.length - this.#bytesMax));
    this.#grow(this.#end - this.#start + kept.length);
    const size = this.#buffer.length;
    const at = (this.#end + bytes.length - kept.length) % size;
    const head = kept.subarray(0, size - at);
    this.#buffer.set(head, at);
    this.#buffer.set(kept.subarray(head.length), 0);
    this.#end += bytes.length;
    this.#forget(this.#end - size);
    if (this.#runs.length - this.#forgotten > runsMax) this.#forget((this.#runs[this.#runs.length - runsMax] as Run).from);
  }

  /** Contiguous bytes from a kept offset on; valid until the next `append`. */
  read(offset: number, bytesMax: number): OutputFrame {
    const index = this.#runAt(offset);
    const runEnd = this.#runs[index + 1]?.from ?? this.#end;
    const at = offset % this.#buffer.length;
    const length = Math.min(bytesMax, runEnd - offset, this.#buffer.length - at);
    return { channel: (this.#runs[index] as Run).channel, offset, bytes: this.#buffer.subarray(at, at + length) };
  }

  /** The index of the run that holds an offset. */
  #runAt(offset: number): number {
    let [low, high] = [this.#forgotten, this.#runs.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.#runs[middle] as Run).from <= offset) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  #forget(before: number): void {
    if (before <= this.#start) return;
    this.#start = before;
    this.#forgotten = this.#runAt(before);
    if (this.#forgotten <= this.#runs.length / 2) return;
    this.#runs = this.#runs.slice(this.#forgotten);
    this.#forgotten = 0;
  }

  #grow(bytes: number): void {
    const old = this.#buffer;
    if (bytes <= old.length || old.length === this.#bytesMax) return;
    let size = old.length;
    while (size < bytes && size < this.#bytesMax) size = Math.min(2 * size, this.#bytesMax);
    const grown = Buffer.allocUnsafeSlow(size);
    for (let offset = this.#start, length = 0; offset < this.#end; offset += length) {
      const [from, to] = [offset % old.length, offset % size];
      length = Math.min(this.#end - offset, old.length - from, size - to);
      old.copy(grown, to, from, from + length);
    }
    this.#buffer = grown;
  }
}
