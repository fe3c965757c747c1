/** Writes a command's input as fast as the command takes it. */
import { closeSync, writeSync } from "node:fs";

/** Pause before the next try while the command takes nothing; doubles up to the longest pause. */
const pauseFirstMs = 1;
const pauseMaxMs = 50;
/** The most bytes written before other work gets its turn. */
const turnBytesMax = 1024 * 1024;

export interface InputEnd {
  /** Open for writing, non-blocking. */
  readonly fd: number;
  /** Written as the end of input when the descriptor must not be closed for that. */
  readonly endOfFile: Uint8Array | undefined;
}

/** Node.js can wait for room only on descriptors that it also reads, so a full pipe or terminal is polled. */
export class InputWriter {
  readonly #fd: number;
  readonly #endOfFile: Uint8Array | undefined;
  readonly #onTaken: (bytes: number) => void;
  readonly #queue: Uint8Array[] = [];
  #timer: NodeJS.Timeout | undefined;
  #pauseMs = pauseFirstMs;
  #ending = false;
  /** Whether the descriptor was closed, or nobody reads what is written. */
  #over = false;
  #closed = false;

  /** @param onTaken receives the number of bytes that the command took, or never will because it stopped reading. */
  constructor({ fd, endOfFile }: InputEnd, onTaken: (bytes: number) => void) {
    this.#fd = fd;
    this.#endOfFile = endOfFile;
    this.#onTaken = onTaken;
  }

  write(bytes: Uint8Array): void {
    if (this.#over || this.#ending) return this.#onTaken(bytes.length);
    this.#queue.push(bytes);
    if (!this.#timer) this.#work();
  }

  /** Ends the input after everything written so far. In a terminal, more can follow. */
  end(): void {
    if (this.#over || this.#ending) return;
    if (this.#endOfFile) {
      this.#queue.push(this.#endOfFile);
    } else {
      this.#ending = true;
    }
    if (!this.#timer) this.#work();
  }

  /** Nothing more is written. */
  close(): void {
    this.#giveUp();
    if (!this.#endOfFile && !this.#closed) closeSync(this.#fd);
    this.#closed = true;
  }

  #work(): void {
    this.#timer = undefined;
    let written = 0;
    while (this.#queue.length > 0) {
      const length = this.#writeFirst();
      if (length === "over") return this.#giveUp();
      if (length === "full") return this.#later(this.#pauseMs);
      written += length;
      if (written >= turnBytesMax) return this.#later(0);
    }
    if (this.#ending) this.close();
  }

  #writeFirst(): number | "full" | "over" {
    const first = this.#queue[0] as Uint8Array;
    let length: number;
    try {
      length = writeSync(this.#fd, first);
    } catch (error) {
      // EPIPE and EIO: nobody reads any more.
      return (error as NodeJS.ErrnoException).code === "EAGAIN" ? "full" : "over";
    }
    this.#pauseMs = pauseFirstMs;
    if (length < first.length) this.#queue[0] = first.subarray(length);
    else this.#queue.shift();
    if (first !== this.#endOfFile) this.#onTaken(length);
    return length;
  }

  #later(pauseMs: number): void {
    this.#timer = setTimeout(() => this.#work(), pauseMs);
    this.#pauseMs = Math.min(2 * Math.max(pauseMs, pauseFirstMs), pauseMaxMs);
  }

  #giveUp(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#over = true;
    const left = this.#queue.reduce((sum, bytes) => sum + (bytes === this.#endOfFile ? 0 : bytes.length), 0);
    this.#queue.length = 0;
    if (left > 0) this.#onTaken(left);
  }
}
