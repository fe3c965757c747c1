/// <reference lib="esnext.disposable" preserve="true" />
/** A command that one can write to. When the connection is lost the client joins the session again by itself. */

import type { AttachMessage, ClientMessage, ServerMessage, StartedMessage, StartMessage } from "../../schemas/session-messages.ts";
import { encodeInput } from "../../stream/session/frames.ts";
import { shouldReattach } from "../../stream/session/protocol.ts";
import { deferred, retry } from "../../waiting.ts";
import { APIConnectionError, SandgateError } from "../errors.ts";
import { retryPauseMs } from "../retry.ts";
import { Input } from "./input.ts";
import { type Dial, type Link, openLink } from "./link.ts";
import { Output } from "./output.ts";
import type { SessionEnd, SessionOutput, SessionSettings, TerminalSize } from "./types.ts";

export type { SessionEnd, SessionListeners, SessionOutput, SessionSettings, TerminalSize } from "./types.ts";

/** What is written within this time is put together. */
const togetherMs = 1;

const asyncDispose: typeof Symbol.asyncDispose = Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose");

/**
 * Output comes by iterating over the session, once, and no faster than it is read; a session whose output nobody reads
 * comes to a stop. Whoever joins a terminal is shown its former output without the questions that programs have asked it. What was written is sent again after a lost connection where it had not arrived, and never twice.
 */
export class Session implements AsyncIterable<SessionOutput> {
  readonly id: string;
  /** Whether it has a terminal. */
  readonly tty: boolean;
  /** Seconds that it outlives its last connection. */
  readonly detachTimeoutS: number;
  /** The exit code. Output has to be read for it to come; `wait` does both. Rejects when the session was lost or left. */
  readonly exited: Promise<SessionEnd>;
  readonly #dial: Dial;
  readonly #settings: SessionSettings;
  readonly #input: Input;
  readonly #output: Output;
  readonly #end = deferred<SessionEnd>();
  #link: Link | undefined;
  #isWriter: boolean;
  #isOver = false;
  #reader: "none" | "reading" | "left" = "none";
  #size: TerminalSize | undefined;
  /** The size that we have asked for. */
  #wanted: TerminalSize | undefined;
  /** Sent again on every new connection. */
  readonly #lasting = new Set<"stdin_close" | "kill">();
  #pumping: ReturnType<typeof setTimeout> | undefined;
  #pumpedAtMs = Number.NEGATIVE_INFINITY;
  /** To be sent when there is a connection. */
  #later: ClientMessage[] = [];

  private constructor(dial: Dial, settings: SessionSettings, started: StartedMessage, joined: AttachMessage | undefined) {
    this.#dial = dial;
    this.#settings = settings;
    this.id = started.session_id;
    this.tty = started.tty;
    this.detachTimeoutS = started.detach_timeout;
    this.#isWriter = started.writer;
    this.#size = sizeOf(started);
    // What is missing up to the first byte that comes is told as a gap.
    const oldUntil = joined && started.tty ? started.output_offset : 0;
    this.#output = new Output(joined?.since ?? started.offset, oldUntil, settings.onGap);
    this.#input = new Input(started.input_offset);
    this.exited = this.#end.promise;
    this.exited.catch(() => {});
  }

  /** @internal @throws {APIError} when the server refuses */
  static async open(dial: Dial, first: StartMessage | AttachMessage, settings: SessionSettings): Promise<Session> {
    let session: Session | undefined;
    const link = await openLink(dial, first, (started) => {
      session = new Session(dial, settings, started, first.type === "attach" ? first : undefined);
      return session.#listener();
    });
    // It is there: the link opens when it has been made.
    return (session as Session).#joined(link);
  }

  /** Whether this client may write, resize, signal and kill. */
  get isWriter(): boolean {
    return this.#isWriter;
  }

  /** Of its terminal, as the client that writes has set it; undefined without a terminal. */
  get size(): TerminalSize | undefined {
    return this.#size;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<SessionOutput, void> {
    if (this.#reader !== "none") throw new SandgateError("the output can be read only once");
    this.#reader = "reading";
    try {
      yield* this.#rest();
    } finally {
      this.#reader = "left";
    }
  }

  /** Reads the output that nobody reads, and resolves with the exit code. */
  async wait(): Promise<SessionEnd> {
    if (this.#reader === "reading") return this.exited;
    this.#reader = "left";
    for await (const _output of this.#rest());
    return this.exited;
  }

  /** Gives bytes to the command. Resolves when more may be written. @throws {SandgateError} when the session is over */
  async write(data: string | Uint8Array): Promise<void> {
    this.#mustWrite();
    this.#input.add(typeof data === "string" ? new TextEncoder().encode(data) : data);
    this.#pumpSoon();
    await this.#input.room();
  }

  /** End of file: the command's standard input is closed; at a terminal, Ctrl-D is typed. Nothing when it has ended. */
  async closeStdin(): Promise<void> {
    if (this.#isOver) return;
    if (this.tty) return this.write("\u0004");
    this.#mustWrite();
    this.#lasting.add("stdin_close");
    this.#pump();
    this.#link?.send({ type: "stdin_close" });
  }

  /** Gives the terminal another size. Nothing for a client that may not write. */
  resize(cols: number, rows: number): void {
    this.#wanted = { cols, rows };
    if (!this.#isWriter) return;
    if (this.#size) this.#size = this.#wanted;
    this.#link?.send({ type: "resize", cols, rows });
  }

  /** Such as `SIGINT`. Nothing when the command has ended; one that is on its way when the connection breaks may be lost. */
  signal(signal: string): void {
    if (this.#isOver) return;
    this.#mustWrite();
    const message = { type: "signal", signal } as const;
    this.#pump();
    if (this.#link) this.#link.send(message);
    else this.#later.push(message);
  }

  /** Ends the command and everything that it has started; its exit code still comes. */
  kill(): void {
    this.#lasting.add("kill");
    this.#link?.send({ type: "kill" });
  }

  /** Leaves; the session goes on for its `detach_timeout`, and `attach` joins it. */
  detach(): void {
    this.#pump();
    this.#link?.send({ type: "detach" });
    const link = this.#link;
    this.#finish({}, new SandgateError("the session was left"));
    link?.close();
  }

  /** `await using`: the command is ended; who only watches leaves it to the others. */
  async [asyncDispose](): Promise<void> {
    if (this.#isOver) return;
    if (!this.#isWriter) return this.detach();
    this.kill();
    await this.wait().catch(() => {});
  }

  /** Output from here on; what was given out is acknowledged when the next is asked for. */
  async *#rest(): AsyncGenerator<SessionOutput, void> {
    for (let output = await this.#output.next(); output; output = await this.#output.next()) {
      try {
        yield output;
      } finally {
        const offset = this.#output.taken(output);
        if (offset !== undefined) this.#link?.send({ type: "ack", offset });
      }
    }
  }

  #mustWrite(): void {
    if (this.#isOver) throw new SandgateError("the session is over");
    if (!this.#isWriter) throw new SandgateError("another client writes to this session; attach with takeover");
  }

  #listener() {
    return {
      output: (frame: Uint8Array) => this.#output.take(frame),
      message: (message: ServerMessage) => this.#hear(message),
      closed: (code: number, error: SandgateError | undefined) => this.#closed(code, error),
    };
  }

  #hear(message: ServerMessage): void {
    if (message.type === "input_ack") {
      this.#input.arrived(message.offset);
      this.#pump();
    } else if (message.type === "gap") this.#output.gap(message.from, message.to);
    else if (message.type === "resize") this.#resized(sizeOf(message));
    else if (message.type === "exit") {
      const { type: _type, ...end } = message;
      this.#end.resolve(end);
      this.#finish({}, new SandgateError("the command has ended"));
    }
  }

  #resized(size: TerminalSize | undefined): void {
    const { cols, rows } = this.#size ?? {};
    this.#size = size;
    if (size && (size.cols !== cols || size.rows !== rows)) this.#settings.onResize?.(size);
  }

  #closed(code: number, error: SandgateError | undefined): void {
    this.#link = undefined;
    if (this.#isOver) return;
    const lost = error ?? new APIConnectionError("the session was closed without an exit code");
    if (!shouldReattach(code)) return this.#fail(lost);
    this.#settings.onConnection?.(false);
    this.#reattach(lost).catch((failure: unknown) => this.#fail(failure));
  }

  async #reattach(lost: SandgateError): Promise<void> {
    const deadlineMs = Date.now() + this.#settings.reattachMs;
    const attachAgain = async (): Promise<void> => {
      if (this.#isOver) return;
      this.#joined(await this.#attach());
      this.#settings.onConnection?.(true);
    };
    await retry(attachAgain, (error, attempt) => {
      const waitMs = retryPauseMs(error, attempt);
      if (waitMs !== undefined && Date.now() + waitMs > deadlineMs) throw lost;
      return waitMs;
    });
  }

  #attach(): Promise<Link> {
    const first = { type: "attach", session_id: this.id, since: this.#output.received } as const;
    // The server may not have noticed yet that the connection over which we wrote is gone.
    const how = this.#settings.readOnly ? { read_only: true } : { takeover: this.#isWriter };
    return openLink(this.#dial, { ...first, ...how }, (started) => {
      this.#isWriter = started.writer;
      this.#input.resume(started.input_offset);
      this.#resized(sizeOf(started));
      return this.#listener();
    });
  }

  #joined(link: Link): this {
    if (this.#isOver) {
      link.close();
      return this;
    }
    this.#link = link;
    if (this.#wanted && this.#isWriter) link.send({ type: "resize", ...this.#wanted });
    this.#pump();
    for (const message of this.#later.splice(0)) link.send(message);
    for (const type of this.#lasting) link.send({ type });
    return this;
  }

  /** At once, unless something was sent within this millisecond: many small pieces go as one. */
  #pumpSoon(): void {
    if (performance.now() - this.#pumpedAtMs >= togetherMs) this.#pump();
    else this.#pumping ??= setTimeout(() => this.#pump(), togetherMs);
  }

  #pump(): void {
    clearTimeout(this.#pumping);
    this.#pumping = undefined;
    this.#pumpedAtMs = performance.now();
    if (this.#link && this.#isWriter) for (const piece of this.#input.unsent()) this.#link.write(encodeInput(piece));
  }

  #fail(error: unknown): void {
    this.#end.reject(error);
    this.#finish({ error }, error);
  }

  #finish(end: { error?: unknown }, reason: unknown): void {
    this.#isOver = true;
    this.#end.reject(reason);
    this.#input.fail(reason);
    this.#output.end(end);
  }
}

function sizeOf({ cols, rows }: { cols?: number; rows?: number }): TerminalSize | undefined {
  return cols !== undefined && rows !== undefined ? { cols, rows } : undefined;
}
