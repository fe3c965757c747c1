/**
 * Replayed output. Queries in it were answered when they were new, or no program waits for the answer any more. If the
 * terminal answered now, its answer would be typed into whatever is running.
 */
import { QuestionFinder } from "./questions.ts";
import type { SessionOutput } from "./types.ts";

export class Replay {
  readonly #until: number;
  readonly #finder = new QuestionFinder();
  /** Offset of the first byte that has not been passed on. */
  #at = 0;

  /** @param until output before this offset is a replay */
  constructor(until: number) {
    this.#until = until;
  }

  /** The pieces to pass on for a piece of output, each with its own offset; together they reach the same end. */
  take(output: SessionOutput): SessionOutput[] {
    const oldBytes = Math.min(output.bytes.length, Math.max(0, this.#until - output.offset));
    if (oldBytes === 0) return [...this.release(), output];
    const old = this.#filter({ ...output, bytes: output.bytes.subarray(0, oldBytes) });
    const isLast = output.offset + oldBytes === this.#until;
    const fresh = { ...output, offset: output.offset + oldBytes, bytes: output.bytes.subarray(oldBytes) };
    return [...old, ...(isLast ? this.release() : []), ...(fresh.bytes.length > 0 ? [fresh] : [])];
  }

  /** The start of a sequence whose rest is not part of the replay. */
  release(): SessionOutput[] {
    const bytes = this.#finder.rest();
    return bytes.length === 0 ? [] : [{ stream: "stdout", bytes, offset: this.#at }];
  }

  #filter({ bytes, offset, stream }: SessionOutput): SessionOutput[] {
    const given: SessionOutput[] = [];
    const parts = this.#finder.read(bytes);
    const heldBytes = this.#finder.heldBytes;
    this.#at = offset + bytes.length - heldBytes - parts.reduce((sum, part) => sum + part.bytes.length, 0);
    let isTold = true;
    for (const part of parts) {
      isTold = !part.isQuestion;
      if (isTold) given.push({ stream, bytes: part.bytes, offset: this.#at });
      this.#at += part.bytes.length;
    }
    // The offset of an empty piece tells the reader how far the output has come.
    if (!isTold) given.push({ stream, bytes: new Uint8Array(), offset: this.#at });
    return given;
  }
}
