/**
 * What was written to a session and has not arrived for certain. After a lost connection the server says how far it had
 * got, and the rest is sent again: nothing is lost, nothing arrives twice.
 */

import { inputPayloadMax } from "../../session/frames.ts";
import { inputBytesMax } from "../../session/protocol.ts";
import { type Deferred, deferred } from "../waiting.ts";

/** A writer waits while this much is on its way. */
const roomBytes = inputBytesMax / 4;

export class Input {
  /** Of the first byte that is kept. */
  #from = 0;
  /** Of the first byte that is not sent yet. */
  #sent = 0;
  #kept: Uint8Array[] = [];
  #keptBytes = 0;
  #room: Deferred<void> | undefined;

  /** @param offset where the session's input stood when we came */
  constructor(offset: number) {
    this.#from = offset;
    this.#sent = offset;
  }

  add(bytes: Uint8Array): void {
    // Programs may fill the buffer that they gave us anew.
    if (bytes.length > 0) this.#kept.push(bytes.slice());
    this.#keptBytes += bytes.length;
  }

  /** Resolves when more may be written. @throws what `fail` was given */
  async room(): Promise<void> {
    while (this.#keptBytes >= roomBytes) {
      this.#room ??= deferred();
      await this.#room.promise;
    }
  }

  /** Everything before this offset has arrived. */
  arrived(offset: number): void {
    for (let first = this.#kept[0]; first && this.#from < offset; first = this.#kept[0]) {
      const taken = Math.min(first.length, offset - this.#from);
      if (taken === first.length) this.#kept.shift();
      else this.#kept[0] = first.subarray(taken);
      this.#from += taken;
      this.#keptBytes -= taken;
    }
    this.#sent = Math.max(this.#sent, this.#from);
    if (this.#keptBytes >= roomBytes) return;
    this.#room?.resolve();
    this.#room = undefined;
  }

  /** A new connection begins where the old one was found to have ended. */
  resume(offset: number): void {
    this.arrived(offset);
    // Others have written meanwhile.
    if (offset > this.#from) this.#from = offset;
    this.#sent = this.#from;
  }

  /** What is to be sent now, in pieces that fit into a frame. */
  *unsent(): Generator<Uint8Array> {
    let at = this.#from;
    for (const bytes of this.#kept) {
      for (let skip = Math.max(0, this.#sent - at); skip < bytes.length; skip += inputPayloadMax) {
        const piece = bytes.subarray(skip, skip + inputPayloadMax);
        this.#sent += piece.length;
        yield piece;
      }
      at += bytes.length;
    }
  }

  fail(error: unknown): void {
    this.#room?.promise.catch(() => {});
    this.#room?.reject(error);
    this.#room = undefined;
  }
}
