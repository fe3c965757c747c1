/** Output that has come and was not read yet. The server sends no more than its window beyond what was read. */

import { decodeOutput } from "../../stream/session/frames.ts";
import { channels } from "../../stream/session/protocol.ts";
import { Condition } from "../../waiting.ts";
import { Replay } from "./replay.ts";
import type { SessionOutput } from "./types.ts";

/** The server is told what was read when it is this much. */
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
   * @param offset of the first byte that is wanted
   * @param oldUntil what comes before this offset is a terminal's output that is shown once more
   */
  constructor(offset: number, oldUntil: number, onGap: ((from: number, to: number) => void) | undefined) {
    this.#received = offset;
    this.#acked = offset;
    this.#replay = new Replay(oldUntil);
    this.#onGap = onGap;
  }

  /** Of the byte after the last one that has come. */
  get received(): number {
    return this.#received;
  }

  /** A frame; what has come before is left out. */
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

  /** Nothing comes between these offsets. */
  gap(from: number, to: number): void {
    if (to <= this.#received) return;
    const begin = Math.max(from, this.#received);
    this.#received = to;
    this.#waiting.push(...this.#replay.release());
    this.#onGap?.(begin, to);
  }

  /** Somebody has had this piece. Returns the offset up to which the server is to be told so, now and then. */
  taken({ offset, bytes }: SessionOutput): number | undefined {
    const end = offset + bytes.length;
    if (end - this.#acked < ackBytes && this.#waiting.length > 0) return undefined;
    this.#acked = end;
    return end;
  }

  /** No more will come. */
  end(end: End): void {
    this.#end ??= end;
    this.#waiting.push(...this.#replay.release());
    this.#news.notify();
  }

  /** The next piece; undefined at the end. @throws the error that ended it */
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
