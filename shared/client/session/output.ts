/** Output that has arrived but has not been read. The server sends at most its window beyond what was read. */

import { decodeOutput } from "../../stream/session/frames.ts";
import { channels } from "../../stream/session/protocol.ts";
import { Condition } from "../../waiting.ts";
import { Replay } from "./replay.ts";
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
