/**
 * Input written to a session whose arrival is not yet confirmed. After a lost connection the server reports how much it
 * received, and the rest is sent again: nothing is lost, nothing arrives twice.
 */

import { inputPayloadMax } from "../../stream/session/frames.ts";
import { inputBytesMax } from "../../stream/session/protocol.ts";
import { Condition } from "../../waiting.ts";
import { joined } from "../transfer.ts";

/** Writers wait while this many bytes are unconfirmed. */
const roomBytes = inputBytesMax / 4;

export class Input {
  /** Offset of the first byte that is kept. */
  #from: number;
  #kept: Uint8Array[] = [];
  #keptBytes = 0;
  /** How many of the kept pieces have been sent on this connection. */
  #sent = 0;
  readonly #room = new Condition();
  #failure: { readonly error: unknown } | undefined;

  /** @param offset the session's input offset when this client attached */
  constructor(offset: number) {
    this.#from = offset;
  }

  add(bytes: Uint8Array): void {
    // Copied, because callers may reuse their buffer.
    for (let at = 0; at < bytes.length; at += inputPayloadMax) this.#kept.push(bytes.slice(at, at + inputPayloadMax));
    this.#keptBytes += bytes.length;
  }

  /** Resolves when more may be written. @throws the error passed to `fail` */
  async room(): Promise<void> {
    await this.#room.until(() => this.#keptBytes < roomBytes || this.#failure !== undefined);
    if (this.#failure) throw this.#failure.error;
  }

  /** Confirms that everything before this offset has arrived. */
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

  /** Continues on a new connection, at the input offset that the server reported. */
  resume(offset: number): void {
    this.arrived(offset);
    // Other clients may have written meanwhile.
    this.#from = Math.max(this.#from, offset);
    this.#sent = 0;
  }

  /** The pieces to send now; small ones are joined into full frames. */
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
