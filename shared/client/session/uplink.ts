/** What a session sends, over its current connection. Messages that must not be lost are kept while there is none. */
import type { ClientMessage } from "../../schemas/sessions.ts";
import { encodeInput, inputPayloadMax } from "../../stream/session/frames.ts";
import { inputBytesMax } from "../../stream/session/protocol.ts";
import { Condition } from "../../waiting.ts";
import { joined } from "../transfer.ts";
import type { Link } from "./link.ts";
import type { TerminalSize } from "./types.ts";

/** Writers wait while this many bytes are unconfirmed. */
const roomBytes = inputBytesMax / 4;

/**
 * Input written to a session whose arrival is not yet confirmed. After a lost connection the server reports how much it
 * received, and the rest is sent again: nothing is lost, nothing arrives twice.
 */
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

/** Writes within this many milliseconds are combined. */
const togetherMs = 1;

export class Uplink {
  readonly #input: Input;
  #link: Link | undefined;
  #isWriter: boolean;
  /** The size last requested by this client. */
  #wanted: TerminalSize | undefined;
  /** Messages that are sent again on every new connection. */
  readonly #lasting = new Set<"stdin_close" | "kill">();
  /** Messages to send on the next connection. */
  #later: ClientMessage[] = [];
  #pumping: ReturnType<typeof setTimeout> | undefined;
  #pumpedAtMs = Number.NEGATIVE_INFINITY;

  /** @param inputOffset the session's input offset when this client attached */
  constructor(inputOffset: number, isWriter: boolean) {
    this.#input = new Input(inputOffset);
    this.#isWriter = isWriter;
  }

  /** Whether this client may write, resize, signal and kill. */
  get isWriter(): boolean {
    return this.#isWriter;
  }

  /** Prepares for a new connection, with the input offset that the server reported. */
  resume(inputOffset: number, isWriter: boolean): void {
    this.#isWriter = isWriter;
    this.#input.resume(inputOffset);
  }

  /** Uses this connection from now on, and sends everything that has waited for one. */
  use(link: Link): void {
    this.#link = link;
    if (this.#wanted && this.#isWriter) link.send({ type: "resize", ...this.#wanted });
    this.#pump();
    for (const message of this.#later.splice(0)) link.send(message);
    for (const type of this.#lasting) link.send({ type });
  }

  /** Records that the connection is gone. */
  lost(): void {
    this.#link = undefined;
  }

  /** Resolves when more may be written. @throws the error passed to `fail` */
  async write(bytes: Uint8Array): Promise<void> {
    this.#input.add(bytes);
    // Sent immediately, unless something was sent within this millisecond, so that many small writes go as one.
    if (performance.now() - this.#pumpedAtMs >= togetherMs) this.#pump();
    else this.#pumping ??= setTimeout(() => this.#pump(), togetherMs);
    await this.#input.room();
  }

  /** Confirms that all input before this offset has arrived. */
  arrived(offset: number): void {
    this.#input.arrived(offset);
    this.#pump();
  }

  resize(size: TerminalSize): void {
    this.#wanted = size;
    if (this.#isWriter) this.#link?.send({ type: "resize", ...size });
  }

  /** Sends a message if there is a connection. */
  tell(message: ClientMessage): void {
    this.#link?.send(message);
  }

  /** Sends a message after everything already written; without a connection, on the next one. */
  sendOnce(message: ClientMessage): void {
    this.#pump();
    if (this.#link) this.#link.send(message);
    else this.#later.push(message);
  }

  /** Sends a message now and on every future connection. */
  sendAlways(type: "stdin_close" | "kill"): void {
    this.#lasting.add(type);
    if (type === "stdin_close") this.#pump();
    this.#link?.send({ type });
  }

  /** Sends what has been written so far, detaches and closes the connection. */
  leave(): void {
    this.#pump();
    this.#link?.send({ type: "detach" });
    this.#link?.close();
    this.#link = undefined;
  }

  /** Rejects all writers waiting for room with this error. */
  fail(reason: unknown): void {
    this.#input.fail(reason);
  }

  #pump(): void {
    clearTimeout(this.#pumping);
    this.#pumping = undefined;
    this.#pumpedAtMs = performance.now();
    if (this.#link && this.#isWriter) for (const piece of this.#input.unsent()) this.#link.write(encodeInput(piece));
  }
}
