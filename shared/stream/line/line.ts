/**
 * A connection between two processes, by a Unix socket or by TLS, on which all of their streams go side by side. How much
 * each stream may send is told by its own credit, as over NATS; the line bounds what has been sent and not been taken.
 *
 * What the other end has not taken yet is kept. When the line breaks, that is handed back to be sent in another way. The other
 * end may get some of it twice: messages of a stream are numbered, so it takes each once.
 */
import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import { inTime } from "../../bus/failures.ts";
import { SandgateError } from "../../errors.ts";
import { deferred, within } from "../../waiting.ts";
import { Outflow } from "../outflow.ts";
import { Blocks } from "./blocks.ts";
import { bareFrame, FrameReader, kinds, readStreamFrame, type StreamFrame, streamFrame } from "./frames.ts";

/** The other end takes nothing for so long: it is stopped, or does not want to. */
const stallDefaultMs = 10_000;
/** What may wait to be taken. Streams that wait for their turn stay far below it. */
const waitingBytesMax = 64 * 1024 * 1024;
/** Frames taken in one turn of the event loop: the other end cannot keep this process from everything else by many small ones. */
const framesPerTurn = 1_000;
const flushMs = 1_000;

/** Whom a line belongs to. */
export interface LineOwner {
  /** A message has come. Must not throw. */
  heard(streamId: string, message: Uint8Array): void;
  /** The line is no more. @param untaken messages that the other end may not have taken, in order */
  broken(line: Line, untaken: readonly StreamFrame[], why: Error): void;
}

export class Line {
  /** The process at the other end, as it is called on the bus. */
  readonly peer: string;
  readonly way: "socket" | "tls";
  readonly #socket: Socket;
  readonly #owner: LineOwner;
  readonly #stallMs: number;
  readonly #outflow = new Outflow(() => this.#sync());
  readonly #reader = new FrameReader();
  readonly #blocks = new Blocks();
  #untaken: StreamFrame[] = [];
  #untakenBytes = 0;
  /** Questions without an answer yet: how many of the messages kept were sent before each. */
  readonly #asked: { upTo: number; readonly answered: () => void }[] = [];
  #isOpen = true;
  #isGathering = false;
  readonly #asking: NodeJS.Timeout;

  /** @param socket connected, and known to lead to that process */
  constructor(peer: string, socket: Socket, owner: LineOwner, stallMs = stallDefaultMs) {
    this.peer = peer;
    this.way = socket instanceof TLSSocket ? "tls" : "socket";
    this.#socket = socket;
    this.#owner = owner;
    this.#stallMs = stallMs;
    const over = (error?: unknown): void => this.#break(error instanceof Error ? error : new Error("the other end has closed it"));
    socket.on("error", over).on("close", over).on("end", over);
    socket.on("data", (bytes: Buffer) => this.#take(bytes, 0));
    socket.resume();
    // A machine without power says nothing, nor does a firewall that forgets a connection, and what is sent there may be little.
    this.#asking = setInterval(() => this.#asked.length === 0 && void this.#sync(), stallMs / 2).unref();
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Sends a message of a stream, in parts whose memory may be used again at once. @throws {SandgateError} `payload_too_large` */
  send(streamId: string, parts: readonly Uint8Array[]): void {
    const frame = streamFrame(streamId, parts, (bytes) => this.#blocks.take(bytes));
    this.#untaken.push(frame);
    this.#untakenBytes += frame.bytes.length;
    this.#write(frame.bytes);
    if (this.#untakenBytes > waitingBytesMax) return this.#break(new Error("too much waits to be taken"));
    this.#outflow.sent(frame.bytes.length);
  }

  /** As `StreamHub.turn`. */
  turn(): Promise<void> | undefined {
    return this.#outflow.turn();
  }

  /** Waits until the other end has taken everything, but not for long; then closes. */
  async close(): Promise<void> {
    if (this.#isOpen && this.#untaken.length > 0) await within(this.#question(), flushMs);
    this.#break(new Error("it was closed"));
  }

  /** At the end of a turn of the event loop everything is written at once. */
  #write(bytes: Buffer): void {
    if (!this.#isGathering) {
      this.#isGathering = true;
      this.#socket.cork();
      process.nextTick(() => {
        this.#isGathering = false;
        this.#socket.uncork();
      });
    }
    this.#socket.write(bytes);
  }

  /** Resolves when the other end has taken what was sent before, or the line is broken. */
  #question(): Promise<void> {
    const { promise, resolve } = deferred<void>();
    this.#asked.push({ upTo: this.#untaken.length, answered: resolve });
    this.#write(bareFrame(kinds.sync));
    return promise;
  }

  async #sync(): Promise<void> {
    if (!this.#isOpen) return;
    await inTime(this.#question(), this.#stallMs).catch(() => this.#break(new Error(`the other end took nothing for ${this.#stallMs} ms`)));
  }

  #take(bytes: Buffer, from: number): void {
    try {
      let at = from;
      for (let frames = 0; at < bytes.length && this.#isOpen; ) {
        const found = this.#reader.take(bytes, at);
        at = found.at;
        if (found.frame) {
          this.#hear(found.frame);
          frames++;
        }
        if (frames >= framesPerTurn) return this.#takeLater(bytes, at);
      }
    } catch (error) {
      this.#break(error as Error);
    }
  }

  #takeLater(bytes: Buffer, at: number): void {
    this.#socket.pause();
    setImmediate(() => {
      if (!this.#isOpen) return;
      this.#socket.resume();
      this.#take(bytes, at);
    });
  }

  #hear(frame: Buffer): void {
    const [kind] = frame;
    if (kind === kinds.stream) {
      const { streamId, message } = readStreamFrame(frame);
      this.#owner.heard(streamId, message);
    } else if (kind === kinds.sync) this.#write(bareFrame(kinds.taken));
    else if (kind === kinds.taken) this.#taken();
    else throw new SandgateError("internal_error", `a frame on a line is of no known kind: ${kind}`);
  }

  #taken(): void {
    const question = this.#asked.shift();
    if (!question) throw new SandgateError("internal_error", "the other end of a line has answered what was not asked");
    const taken = this.#untaken.splice(0, question.upTo);
    for (const { bytes } of taken) {
      this.#untakenBytes -= bytes.length;
      this.#blocks.giveBack(bytes);
    }
    for (const later of this.#asked) later.upTo -= question.upTo;
    question.answered();
  }

  #break(why: Error): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    clearInterval(this.#asking);
    this.#socket.destroy();
    const untaken = this.#untaken;
    this.#untaken = [];
    for (const { answered } of this.#asked.splice(0)) answered();
    this.#owner.broken(this, untaken, why);
    // Those that wait for their turn go on in the other way.
    this.#outflow.reset();
  }
}
