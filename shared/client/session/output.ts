/** Output that has arrived but has not been read. The server sends at most its window beyond what was read. */
import { decodeOutput } from "../../stream/session/frames.ts";
import { channels } from "../../stream/session/protocol.ts";
import { Condition } from "../../waiting.ts";
import { QuestionFinder } from "./questions.ts";
import type { SessionOutput } from "./types.ts";

/** Reading is acknowledged in steps of this many bytes. */
const ackBytes = 32 * 1024;

type End = { readonly error?: unknown };

export class Output {
  readonly #waiting: SessionOutput[] = [];
  readonly #news = new Condition();
  #end: End | undefined;

  readonly #onGap: ((from: number, to: number) => void) | undefined;
  readonly #replay: Replay;
  #received: number;
  #acked: number;

  /**
   * @param offset of the first wanted byte
   * @param oldUntil terminal output before this offset is a replay
   */
  constructor(offset: number, oldUntil: number, onGap: ((from: number, to: number) => void) | undefined) {
    this.#received = offset;
    this.#acked = offset;
    this.#replay = new Replay(oldUntil);
    this.#onGap = onGap;
  }

  /** Offset after the last byte that has arrived. */
  get received(): number {
    return this.#received;
  }

  /** Takes a frame, without bytes that had already arrived. */
  take(frame: Uint8Array): void {
    const output = decodeOutput(frame);
    if (!output) return;
    const { channel, offset, bytes } = output;
    this.gap(this.#received, offset);
    const fresh = bytes.subarray(Math.max(0, this.#received - offset));
    if (fresh.length === 0) return;
    this.#received = offset + bytes.length;
    const stream = channel === channels.stdout ? "stdout" : "stderr";
    this.#waiting.push(...this.#replay.take({ stream, bytes: fresh, offset: this.#received - fresh.length }));
    this.#news.notify();
  }

  /** Records that the output between these offsets is missing. */
  gap(from: number, to: number): void {
    if (to <= this.#received) return;
    const begin = Math.max(from, this.#received);
    this.#received = to;
    this.#waiting.push(...this.#replay.release());
    this.#onGap?.(begin, to);
  }

  /** Marks a piece as read. Returns the offset to acknowledge to the server, if it is time to do so. */
  taken({ offset, bytes }: SessionOutput): number | undefined {
    const end = offset + bytes.length;
    if (end - this.#acked < ackBytes && this.#waiting.length > 0) return undefined;
    this.#acked = end;
    return end;
  }

  /** Ends the output. */
  end(end: End): void {
    this.#end ??= end;
    this.#waiting.push(...this.#replay.release());
    this.#news.notify();
  }

  /** The next piece; undefined at the end. @throws the error that ended the output */
  async next(): Promise<SessionOutput | undefined> {
    for (;;) {
      const output = this.#waiting.shift();
      if (output) return output;
      if (this.#end && "error" in this.#end) throw this.#end.error;
      if (this.#end) return undefined;
      await this.#news.wait();
    }
  }
}

/**
 * Replayed output. Queries in it were answered when they were new, or no program waits for the answer any more. If the
 * terminal answered now, its answer would be typed into whatever is running.
 */
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
