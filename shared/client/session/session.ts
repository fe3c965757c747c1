/** A command that one can write to. When the connection is lost the client joins the session again by itself. */
import { encodeInput } from "../../session/frames.ts";
import type { AttachMessage, ClientMessage, ServerMessage, StartedMessage, StartMessage } from "../../session/messages.ts";
import { shouldReattach } from "../../session/protocol.ts";
import { APIConnectionError, SandgateError } from "../errors.ts";
import { retryPauseMs } from "../retry.ts";
import { deferred, pause } from "../waiting.ts";
import { Input } from "./input.ts";
import { type Dial, type Link, openLink } from "./link.ts";
import { Output } from "./output.ts";
import type { SessionEnd, SessionOutput, SessionSettings } from "./types.ts";

export type { SessionEnd, SessionListeners, SessionOutput, SessionSettings } from "./types.ts";

const asyncDispose: typeof Symbol.asyncDispose = Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose");

/**
 * Output comes by iterating over the session, once, and no faster than it is read; a session whose output nobody reads
 * comes to a stop. What was written is sent again after a lost connection where it had not arrived, and never twice.
 */
export class Session implements AsyncIterable<SessionOutput> {
  readonly id: string;
  /** Whether it has a terminal. */
  readonly tty: boolean;
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
  #isRead = false;
  #size: { cols: number; rows: number } | undefined;
  /** Sent again on every new connection. */
  readonly #lasting = new Set<"stdin_close" | "kill">();
  /** To be sent when there is a connection. */
  #later: ClientMessage[] = [];

  private constructor(dial: Dial, settings: SessionSettings, started: StartedMessage, since = started.offset) {
    this.#dial = dial;
    this.#settings = settings;
    this.id = started.session_id;
    this.tty = started.tty;
    this.#isWriter = started.writer;
    // What is missing up to the first byte that comes is told as a gap.
    this.#output = new Output(since, settings.onGap);
    this.#input = new Input(started.input_offset);
    this.exited = this.#end.promise;
    this.exited.catch(() => {});
  }

  /** @internal @throws {APIError} when the server refuses */
  static async open(dial: Dial, first: StartMessage | AttachMessage, settings: SessionSettings): Promise<Session> {
    let session: Session | undefined;
    const link = await openLink(dial, first, (started) => {
      session = new Session(dial, settings, started, first.type === "attach" ? first.since : undefined);
      return session.#listener();
    });
    // It is there: the link opens when it has been made.
    return (session as Session).#joined(link);
  }

  /** Whether this client may write, resize, signal and kill. */
  get isWriter(): boolean {
    return this.#isWriter;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<SessionOutput, void> {
    if (this.#isRead) throw new SandgateError("the output can be read only once");
    this.#isRead = true;
    for (let output = await this.#output.next(); output; output = await this.#output.next()) {
      yield output;
      const offset = this.#output.taken(output);
      if (offset !== undefined) this.#link?.send({ type: "ack", offset });
    }
  }

  /** Reads output that nobody wants, and resolves with the exit code. */
  async wait(): Promise<SessionEnd> {
    if (!this.#isRead) for await (const _output of this);
    return this.exited;
  }

  /** Gives bytes to the command. Resolves when more may be written. @throws {SandgateError} when the session is over */
  async write(data: string | Uint8Array): Promise<void> {
    this.#mustWrite();
    this.#input.add(typeof data === "string" ? new TextEncoder().encode(data) : data);
    this.#pump();
    await this.#input.room();
  }

  /** End of file: the command's standard input is closed; at a terminal, Ctrl-D is typed. Nothing when it has ended. */
  async closeStdin(): Promise<void> {
    if (this.#isOver) return;
    if (this.tty) return this.write("\u0004");
    this.#mustWrite();
    this.#lasting.add("stdin_close");
    this.#link?.send({ type: "stdin_close" });
  }

  /** The terminal has another size. */
  resize(cols: number, rows: number): void {
    this.#size = { cols, rows };
    this.#link?.send({ type: "resize", cols, rows });
  }

  /** Such as `SIGINT`. Nothing when the command has ended; one that is on its way when the connection breaks may be lost. */
  signal(signal: string): void {
    if (this.#isOver) return;
    this.#mustWrite();
    const message = { type: "signal", signal } as const;
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
    this.#link?.send({ type: "detach" });
    const link = this.#link;
    this.#finish({}, new SandgateError("the session was left"));
    link?.close();
  }

  /** `await using`: the command is ended. */
  async [asyncDispose](): Promise<void> {
    if (this.#isOver) return;
    this.kill();
    await this.wait().catch(() => {});
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
    else if (message.type === "exit") {
      const { type: _type, ...end } = message;
      this.#end.resolve(end);
      this.#finish({}, new SandgateError("the command has ended"));
    }
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
    for (let attempt = 0; !this.#isOver; attempt++) {
      const first = { type: "attach", session_id: this.id, since: this.#output.received } as const;
      // The server may not have noticed yet that the connection over which we wrote is gone.
      const how = this.#settings.readOnly ? { read_only: true } : { takeover: this.#isWriter };
      try {
        const link = await openLink(this.#dial, { ...first, ...how }, ({ writer, input_offset }) => {
          this.#isWriter = writer;
          this.#input.resume(input_offset);
          return this.#listener();
        });
        this.#joined(link);
        return this.#settings.onConnection?.(true);
      } catch (error) {
        const waitMs = retryPauseMs(error, attempt);
        if (waitMs === undefined) throw error;
        if (Date.now() + waitMs > deadlineMs) throw lost;
        await pause(waitMs);
      }
    }
  }

  #joined(link: Link): this {
    if (this.#isOver) {
      link.close();
      return this;
    }
    this.#link = link;
    if (this.#size) link.send({ type: "resize", ...this.#size });
    this.#pump();
    for (const message of this.#later.splice(0)) link.send(message);
    for (const type of this.#lasting) link.send({ type });
    return this;
  }

  #pump(): void {
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
