/**
 * Memory for the large frames of a line, used again when the other end has taken them. If each had memory of its own, V8 would search
 * its whole heap for what is unused every few dozen of them, which takes more CPU time than sending them.
 */

/** Fits a frame of all that is read from a pipe at once. */
const blockBytes = 128 * 1024;
/** Smaller ones have memory of their own: they cost little, and would waste most of a block. */
const leastBytes = 48 * 1024;
/** As much as may be on its way. More than these are left to V8. */
const keptMax = 16;

export class Blocks {
  readonly #free: Buffer[] = [];

  take(bytes: number): Buffer {
    if (bytes < leastBytes || bytes > blockBytes) return Buffer.allocUnsafe(bytes);
    return (this.#free.pop() ?? Buffer.allocUnsafeSlow(blockBytes)).subarray(0, bytes);
  }

  /** @param bytes from `take`, and used by nobody any more */
  giveBack({ buffer }: Buffer): void {
    if (buffer.byteLength === blockBytes && this.#free.length < keptMax) this.#free.push(Buffer.from(buffer));
  }
}
