/**
 * Output that is shown once more. Questions of programs were answered when they were new, or nobody waits for an answer
 * any more: answered now, they would be typed into whatever runs.
 */
import { QuestionFinder } from "./questions.ts";
import type { SessionOutput } from "./types.ts";

export class Replay {
  readonly #until: number;
  readonly #finder = new QuestionFinder();
  /** Of the first byte that has not been given out. */
  #at = 0;

  /** @param until output before this offset is shown once more */
  constructor(until: number) {
    this.#until = until;
  }

  /** What is to be given out for a piece of output: each with its own offset, together up to where the piece ends. */
  take(output: SessionOutput): SessionOutput[] {
    const oldBytes = Math.min(output.bytes.length, Math.max(0, this.#until - output.offset));
    if (oldBytes === 0) return [...this.release(), output];
    const old = this.#filter({ ...output, bytes: output.bytes.subarray(0, oldBytes) });
    const isLast = output.offset + oldBytes === this.#until;
    const fresh = { ...output, offset: output.offset + oldBytes, bytes: output.bytes.subarray(oldBytes) };
    return [...old, ...(isLast ? this.release() : []), ...(fresh.bytes.length > 0 ? [fresh] : [])];
  }

  /** The beginning of a sequence whose rest will not come as part of the replay. */
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
    // Whoever reads knows by the offset of an empty piece how far it has come.
    if (!isTold) given.push({ stream, bytes: new Uint8Array(), offset: this.#at });
    return given;
  }
}
