/// <reference lib="esnext.disposable" preserve="true" />
/** An interactive command. If the connection is lost, the client rejoins the session by itself. */

import type { AttachMessage, ServerMessage, StartedMessage, StartMessage } from "../../schemas/sessions.ts";
import { shouldReattach } from "../../stream/session/protocol.ts";
import { deferred, retry } from "../../waiting.ts";
import { APIConnectionError, SandgateError } from "../errors.ts";
import { retryPauseMs } from "../retry.ts";
import { type Dial, type Link, type LinkListener, openLink } from "./link.ts";
import { Output } from "./output.ts";
import type { SessionEnd, SessionOutput, SessionSettings, TerminalSize } from "./types.ts";
import { Uplink } from "./uplink.ts";

export type { SessionEnd, SessionListeners, SessionOutput, SessionSettings, TerminalSize } from "./types.ts";

const asyncDispose: typeof Symbol.asyncDispose = Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose");

/**
 * Output is read by iterating over the session, once. The server sends it only as fast as it is read, so a session whose
 * output is not read stalls. A client that joins a terminal sees its earlier output without the queries that programs sent to
 * the terminal. After a lost connection, input that had not arrived is sent again, never twice.
 */
export class Session implements AsyncIterable<SessionOutput> {
  readonly id: string;
  /** Whether the session has a terminal. */
  readonly tty: boolean;
  /** Seconds that the session outlives its last connection. */
  readonly detachTimeoutS: number;
  /** The exit code. It arrives only if the output is read; `wait` does both. Rejects if the session was lost or left. */
  readonly exited: Promise<SessionEnd>;
  readonly #dial: Dial;
  readonly #settings: SessionSettings;
  readonly #uplink: Uplink;
  readonly #output: Output;
  readonly #end = deferred<SessionEnd>();
  #isOver = false;
  #reader: "none" | "reading" | "left" = "none";
  #size: TerminalSize | undefined;

  private constructor(dial: Dial, settings: SessionSettings, started: StartedMessage, joined: AttachMessage | undefined) {
    this.#dial = dial;
    this.#settings = settings;
    this.id = started.session_id;
    this.tty = started.tty;
    this.detachTimeoutS = started.detach_timeout;
    this.#size = sizeOf(started);
    // Output missing before the first byte that arrives is reported as a gap.
    const oldUntil = joined && started.tty ? started.output_offset : 0;
    this.#output = new Output(joined?.since ?? started.offset, oldUntil, settings.onGap);
    this.#uplink = new Uplink(started.input_offset, started.writer);
    this.exited = this.#end.promise;
    this.exited.catch(() => {});
  }

  /** @internal @throws {APIError} if the server refuses */
  static async open(dial: Dial, first: StartMessage | AttachMessage, settings: SessionSettings): Promise<Session> {
    let session: Session | undefined;
    const link = await openLink(dial, first, (started) => {
      session = new Session(dial, settings, started, first.type === "attach" ? first : undefined);
      return session.#listener();
    });
    // Always set here: the link opens only after the session has been created.
    (session as Session).#use(link);
    return session as Session;
  }

  /** Whether this client may write, resize, signal and kill. */
  get isWriter(): boolean {
    return this.#uplink.isWriter;
  }

  /** The size of the terminal, as set by the client that writes; undefined without a terminal. */
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

  /** Reads and drops output that is not otherwise read, and resolves with the exit code. */
  async wait(): Promise<SessionEnd> {
    if (this.#reader === "reading") return this.exited;
    this.#reader = "left";
    for await (const _output of this.#rest());
    return this.exited;
  }

  /** Sends input to the command. Resolves when more may be written. @throws {SandgateError} if the session is over */
  async write(data: string | Uint8Array): Promise<void> {
    this.#mustWrite();
    await this.#uplink.write(typeof data === "string" ? new TextEncoder().encode(data) : data);
  }

  /** Signals end of input: closes the command's standard input or, with a terminal, types Ctrl-D. No-op after its end. */
  async closeStdin(): Promise<void> {
    if (this.#isOver) return;
    if (this.tty) return this.write("\u0004");
    this.#mustWrite();
    this.#uplink.sendAlways("stdin_close");
  }

  /** Resizes the terminal. No-op for a client that may not write. */
  resize(cols: number, rows: number): void {
    const size = { cols, rows };
    if (this.isWriter && this.#size) this.#size = size;
    this.#uplink.resize(size);
  }

  /** Sends a signal such as `SIGINT`. No-op after the command's end. A signal sent while the connection breaks may be lost. */
  signal(signal: string): void {
    if (this.#isOver) return;
    this.#mustWrite();
    this.#uplink.sendOnce({ type: "signal", signal });
  }

  /** Ends the command and every process it started; its exit code still arrives. */
  kill(): void {
    this.#uplink.sendAlways("kill");
  }

  /** Leaves the session, which lives on for its `detach_timeout`; `attach` joins it again. */
  detach(): void {
    this.#finish({}, new SandgateError("the session was left"));
    this.#uplink.leave();
  }

  /** For `await using`: ends the command. A client that only watches detaches instead. */
  async [asyncDispose](): Promise<void> {
    if (this.#isOver) return;
    if (!this.isWriter) return this.detach();
    this.kill();
    await this.wait().catch(() => {});
  }

  /** The remaining output. A piece is acknowledged when the next one is requested. */
  async *#rest(): AsyncGenerator<SessionOutput, void> {
    for (let output = await this.#output.next(); output; output = await this.#output.next()) {
      try {
        yield output;
      } finally {
        const offset = this.#output.taken(output);
        if (offset !== undefined) this.#uplink.tell({ type: "ack", offset });
      }
    }
  }

  #mustWrite(): void {
    if (this.#isOver) throw new SandgateError("the session is over");
    if (!this.isWriter) throw new SandgateError("another client writes to this session; attach with takeover");
  }

  #listener(): LinkListener {
    return {
      output: (frame) => this.#output.take(frame),
      message: (message) => this.#hear(message),
      closed: (code, error) => this.#closed(code, error),
    };
  }

  #hear(message: ServerMessage): void {
    if (message.type === "input_ack") this.#uplink.arrived(message.offset);
    else if (message.type === "gap") this.#output.gap(message.from, message.to);
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
    this.#uplink.lost();
    if (this.#isOver) return;
    const lost = error ?? new APIConnectionError("the session was closed without an exit code");
    if (!shouldReattach(code)) return this.#fail(lost);
    this.#settings.onConnection?.(false);
    this.#joinAgain(lost).catch((failure: unknown) => this.#fail(failure));
  }

  async #joinAgain(lost: SandgateError): Promise<void> {
    const deadlineMs = Date.now() + this.#settings.reattachMs;
    const join = async (): Promise<void> => {
      if (this.#isOver) return;
      this.#use(await this.#attach());
      this.#settings.onConnection?.(true);
    };
    await retry(join, (error, attempt) => {
      const waitMs = retryPauseMs(error, attempt);
      if (waitMs !== undefined && Date.now() + waitMs > deadlineMs) throw lost;
      return waitMs;
    });
  }

  #attach(): Promise<Link> {
    // The server may not have noticed yet that our previous connection is gone.
    const how = this.#settings.readOnly ? { read_only: true } : { takeover: this.isWriter };
    return openLink(this.#dial, { type: "attach", session_id: this.id, since: this.#output.received, ...how }, (started) => {
      this.#uplink.resume(started.input_offset, started.writer);
      this.#resized(sizeOf(started));
      return this.#listener();
    });
  }

  #use(link: Link): void {
    if (this.#isOver) link.close();
    else this.#uplink.use(link);
  }

  #fail(error: unknown): void {
    this.#end.reject(error);
    this.#finish({ error }, error);
  }

  #finish(end: { error?: unknown }, reason: unknown): void {
    this.#isOver = true;
    this.#end.reject(reason);
    this.#uplink.fail(reason);
    this.#output.end(end);
  }
}

function sizeOf({ cols, rows }: { cols?: number; rows?: number }): TerminalSize | undefined {
  return cols !== undefined && rows !== undefined ? { cols, rows } : undefined;
}
