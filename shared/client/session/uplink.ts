/** What a session sends, over whatever connection it has; what must not be lost is kept until there is one. */

import type { ClientMessage } from "../../schemas/session-messages.ts";
import { encodeInput } from "../../stream/session/frames.ts";
import { Input } from "./input.ts";
import type { Link } from "./link.ts";
import type { TerminalSize } from "./types.ts";

/** What is written within this time is put together. */
const togetherMs = 1;

export class Uplink {
  readonly #input: Input;
  #link: Link | undefined;
  #isWriter: boolean;
  /** The size that we have asked for. */
  #wanted: TerminalSize | undefined;
  /** Sent again on every new connection. */
  readonly #lasting = new Set<"stdin_close" | "kill">();
  /** To be sent when there is a connection. */
  #later: ClientMessage[] = [];
  #pumping: ReturnType<typeof setTimeout> | undefined;
  #pumpedAtMs = Number.NEGATIVE_INFINITY;

  /** @param inputOffset where the session's input stood when we came */
  constructor(inputOffset: number, isWriter: boolean) {
    this.#input = new Input(inputOffset);
    this.#isWriter = isWriter;
  }

  /** Whether this client may write, resize, signal and kill. */
  get isWriter(): boolean {
    return this.#isWriter;
  }

  /** Another connection is about to be used, at whose server the input stands so. */
  resume(inputOffset: number, isWriter: boolean): void {
    this.#isWriter = isWriter;
    this.#input.resume(inputOffset);
  }

  /** Sends over this connection from now on, beginning with what has waited for it. */
  use(link: Link): void {
    this.#link = link;
    if (this.#wanted && this.#isWriter) link.send({ type: "resize", ...this.#wanted });
    this.#pump();
    for (const message of this.#later.splice(0)) link.send(message);
    for (const type of this.#lasting) link.send({ type });
  }

  /** The connection is gone. */
  lost(): void {
    this.#link = undefined;
  }

  /** Resolves when more may be written. @throws what `fail` was given */
  async write(bytes: Uint8Array): Promise<void> {
    this.#input.add(bytes);
    // At once, unless something was sent within this millisecond: many small pieces go as one.
    if (performance.now() - this.#pumpedAtMs >= togetherMs) this.#pump();
    else this.#pumping ??= setTimeout(() => this.#pump(), togetherMs);
    await this.#input.room();
  }

  /** Everything before this offset has arrived. */
  arrived(offset: number): void {
    this.#input.arrived(offset);
    this.#pump();
  }

  resize(size: TerminalSize): void {
    this.#wanted = size;
    if (this.#isWriter) this.#link?.send({ type: "resize", ...size });
  }

  /** Only while there is a connection. */
  tell(message: ClientMessage): void {
    this.#link?.send(message);
  }

  /** Behind all that was written; where there is no connection, over the next one. */
  sendOnce(message: ClientMessage): void {
    this.#pump();
    if (this.#link) this.#link.send(message);
    else this.#later.push(message);
  }

  /** Now and over every connection to come. */
  sendAlways(type: "stdin_close" | "kill"): void {
    this.#lasting.add(type);
    if (type === "stdin_close") this.#pump();
    this.#link?.send({ type });
  }

  /** Nothing is sent any more but what was written until now, and that one leaves. */
  leave(): void {
    this.#pump();
    this.#link?.send({ type: "detach" });
    this.#link?.close();
    this.#link = undefined;
  }

  /** Whoever waits for room gets this error. */
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
