/**
 * What was written to a session and has not arrived for certain. After a lost connection the server says how far it had
 * got, and the rest is sent again: nothing is lost, nothing arrives twice.
 */

import { inputPayloadMax } from "../../stream/session/frames.ts";
import { inputBytesMax } from "../../stream/session/protocol.ts";
import { Condition } from "../../waiting.ts";
import { joined } from "../transfer.ts";

/** A writer waits while this much is on its way. */
const roomBytes = inputBytesMax / 4;

export class Input {
  /** Of the first byte that is kept. */
  #from: number;
  #kept: Uint8Array[] = [];
  #keptBytes = 0;
  /** How many of the kept ones have been sent on this connection. */
  #sent = 0;
  readonly #room = new Condition();
  #failure: { readonly error: unknown } | undefined;

  /** @param offset where the session's input stood when we came */
  constructor(offset: number) {
    this.#from = offset;
  }

  add(bytes: Uint8Array): void {
    // Programs may fill the buffer that they gave us anew.
    for (let at = 0; at < bytes.length; at += inputPayloadMax) this.#kept.push(bytes.slice(at, at + inputPayloadMax));
    this.#keptBytes += bytes.length;
  }

  /** Resolves when more may be written. @throws what `fail` was given */
  async room(): Promise<void> {
    await this.#room.until(() => this.#keptBytes < roomBytes || this.#failure !== undefined);
    if (this.#failure) throw this.#failure.error;
  }

  /** Everything before this offset has arrived. */
  arrived(offset: number): void {
    let count = 0;
    for (let first = this.#kept[count]; first && this.#from < offset; first = this.#kept[count]) {
      const taken = Math.min(first.length, offset - this.#from);
      if (taken === first.length) count++;
      else this.#kept[count] = first.subarray(taken);
      this.#from += taken;
      this.#keptBytes -= taken;
    }
    this.#kept.splice(0, count);
    this.#sent = Math.max(0, this.#sent - count);
    this.#room.notify();
  }

  /** A new connection begins where the old one was found to have ended. */
  resume(offset: number): void {
    this.arrived(offset);
    // Others may have written meanwhile.
    this.#from = Math.max(this.#from, offset);
    this.#sent = 0;
  }

  /** What is to be sent now; what was written in small pieces fills a frame together. */
  *unsent(): Generator<Uint8Array> {
    while (this.#sent < this.#kept.length) {
      const from = this.#sent;
      let length = 0;
      for (let next = this.#kept[this.#sent]; next && length + next.length <= inputPayloadMax; next = this.#kept[this.#sent]) {
        length += next.length;
        this.#sent++;
      }
      yield joined(this.#kept.slice(from, this.#sent));
    }
  }

  fail(error: unknown): void {
    this.#failure = { error };
    this.#room.notify();
  }
}
