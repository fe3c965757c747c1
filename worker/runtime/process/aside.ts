/**
 * What sandboxes that write fast may cost this process. The kernel locks a pipe while a program writes to it, also while that
 * program waits for memory that its sandbox has not left, or for its disk, and whoever reads the pipe waits as long. So such pipes are
 * read on other threads, of which a sandbox gets one at a time, and what is read only to be dropped is paced.
 */
import { read } from "node:fs";
import { ByteRate } from "../../../shared/byte-rate.ts";
import { growPipe } from "../../../shared/util/libc.ts";
import { Semaphore } from "../../../shared/util/mutex.ts";
import { backoffMs, pause } from "../../../shared/waiting.ts";

/** The most bytes of one read, unless whoever reads has room for more. */
export const chunkBytesMax = 64 * 1024;
/**
 * The most then: what passes through in larger pieces costs less in every process on its way. Escaped, it still fits into a frame, and
 * with what a frame adds it stays below 128 KiB, from where on the C library has the kernel map the memory of each piece anew.
 */
export const asideBytesMax = 120 * 1024;
/** Of the four that Node.js has, so that files and records have one as well. */
const threadsMax = 3;
const threads = new Semaphore(threadsMax);

/** Of all sandboxes together: one `yes` would otherwise take half a CPU from the calls of all others. */
const droppedBytesPerS = 128 * 1024 ** 2;
const dropped = new ByteRate(droppedBytesPerS);
const dropTurn = new Semaphore(1);

/** However many commands and streams a sandbox has, it is one of those that wait for their turn. */
interface Lanes {
  readonly reads: Semaphore;
  readonly drops: Semaphore;
}

const lanes = new WeakMap<object, Lanes>();

function lanesOf(owner: object): Lanes {
  const known = lanes.get(owner) ?? { reads: new Semaphore(1), drops: new Semaphore(1) };
  lanes.set(owner, known);
  return known;
}

/**
 * An empty pipe is looked into again at once, then after pauses that double, until it has been empty for `quietMs`: its writer is
 * about to write, and fills it in less than a millisecond.
 */
const looks = { firstMs: 1, maxMs: 4 };
const looksAtOnce = 4;
const quietMs = 1_000;

/** What a pipe holds then, so that its writer goes on while it is not looked into. Unasked, it is 64 KiB. */
const grownBytes = 256 * 1024;
/** The kernel bounds what all pipes of a user hold (64 MiB by default), and beyond that, new ones hold next to nothing. */
const grownMax = 64;
let grown = 0;

async function take(fd: number, landing: Buffer, mostBytes: number): Promise<Buffer | "empty" | "end"> {
  const most = Math.min(Math.max(mostBytes, chunkBytesMax), landing.length);
  const length = await new Promise<number | undefined>((resolve) => {
    read(fd, landing, 0, most, null, (error, bytes) => resolve(error ? undefined : bytes));
  });
  if (length) return landing.subarray(0, length);
  return length === 0 ? "end" : "empty";
}

/** Resolves when the owner may have so many bytes more read for nothing. @throws the reason of the signal */
export function dropAside(owner: object, bytes: number, signal?: AbortSignal): Promise<void> {
  return lanesOf(owner).drops.run(() => dropTurn.run(() => dropped.take(bytes, signal)));
}

/** A pipe that does not wait, as other threads read it. */
export class AsideReader {
  readonly #owner: object;
  readonly #fd: number;
  #isReading = false;
  #isClosing = false;
  #isGrown = false;
  /** What is read goes here again and again: memory for each piece would have the whole heap searched for what is unused. */
  #landing: Buffer | undefined;
  #release: (() => void) | undefined;

  /** @param owner the sandbox that writes */
  constructor(owner: object, fd: number) {
    this.#owner = owner;
    this.#fd = fd;
  }

  /**
   * The next bytes, valid until it is asked for more; undefined if there are none for a while, or if there will be none.
   *
   * @param hasExited whether the program has, so that nothing is waited for
   * @param roomBytes what whoever asks has room for
   */
  async next(hasExited: () => boolean, roomBytes: number): Promise<Buffer | "end" | undefined> {
    const endMs = performance.now() + quietMs;
    for (let empty = 0; ; empty++) {
      const isLast = hasExited() || performance.now() >= endMs;
      const found = await this.#read(roomBytes);
      if (this.#isClosing) return undefined;
      if (found !== "empty") return found;
      if (isLast) {
        this.#landing = undefined;
        return undefined;
      }
      // Once more at least after the exit: the program may have written its last in between.
      if (!hasExited() && empty >= looksAtOnce) await pause(backoffMs(empty - looksAtOnce, looks));
    }
  }

  /** @param release closes the descriptor; called when no other thread has it. */
  close(release: () => void): void {
    this.#isClosing = true;
    if (this.#isGrown) grown--;
    this.#isGrown = false;
    if (this.#isReading) this.#release = release;
    else release();
  }

  async #read(roomBytes: number): Promise<Buffer | "empty" | "end"> {
    if (this.#isClosing) return "end";
    this.#isReading = true;
    const grow = !this.#isGrown && grown < grownMax;
    if (grow) {
      this.#isGrown = true;
      grown++;
    }
    const found = await lanesOf(this.#owner).reads.run(() =>
      threads.run(async () => {
        if (grow) await growPipe(this.#fd, grownBytes);
        this.#landing ??= Buffer.allocUnsafeSlow(asideBytesMax);
        return take(this.#fd, this.#landing, roomBytes);
      }),
    );
    this.#isReading = false;
    this.#release?.();
    return found;
  }
}
