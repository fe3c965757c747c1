/**
 * One end of a stream between two processes. In both directions data and messages are numbered without a hole, so that
 * what is lost is an error and never silence, and bytes go only where the other end has granted room for them.
 *
 * Who opens a stream names it to the other end in a call. The other end has the last word: its `end` or `fail` is the end
 * of the stream, while those of the opener only say that it sends no more.
 */
import { stoppedBy } from "../abort.ts";
import type { StreamTarget } from "../bus/contract/fields.ts";
import { SandgateError } from "../errors.ts";
import type { FrameHeader } from "./frame.ts";
import type { StreamEnd, StreamHub } from "./hub.ts";
import { Inbox, type StreamListener } from "./inbox.ts";
import { ReceiveWindow, SendWindow } from "./window.ts";

export interface StreamOptions {
  /** Bytes that may wait here to be read, one frame of overshoot aside; absent where none is read, or a listener takes all. */
  readonly windowBytes?: number;
  /** The stream ends when the other end has granted no room for this long. */
  readonly stallMs?: number;
  /** Is told of everything as it comes; without it, `read` gives what comes. */
  readonly listener?: StreamListener;
}

export class Stream implements StreamEnd {
  readonly streamId: string;
  readonly remotePeer: string;
  readonly #hub: StreamHub;
  readonly #hasLastWord: boolean;
  readonly #stop = new AbortController();
  readonly #listener: StreamListener;
  readonly #inbox: Inbox | undefined;
  readonly #sent: SendWindow;
  readonly #received: ReceiveWindow;
  /** `quiet`: this end has said that it sends no more. */
  #phase: "open" | "quiet" | "over" = "open";

  /** @param asked by whom the stream was opened, where that is the other end */
  private constructor(hub: StreamHub, remotePeer: string, asked: StreamTarget | undefined, options: StreamOptions) {
    const { windowBytes = 0, stallMs, listener } = options;
    this.#hub = hub;
    this.streamId = asked?.stream_id ?? hub.newStreamId();
    this.remotePeer = remotePeer;
    this.#hasLastWord = asked !== undefined;
    this.#inbox = listener ? undefined : new Inbox();
    this.#listener = listener ?? (this.#inbox as Inbox);
    const stalled = (): void => this.cancel(new SandgateError("unavailable", "the other end of the stream takes no more"));
    this.#sent = new SendWindow(asked?.window_bytes ?? 0, stallMs, stalled);
    this.#received = new ReceiveWindow(windowBytes, asked ? 0 : windowBytes);
    hub.add(this.streamId, this);
    this.#read(0);
  }

  /** A new stream to a process, which is to be told of its `target`. */
  static open(hub: StreamHub, remotePeer: string, options: StreamOptions = {}): Stream {
    return new Stream(hub, remotePeer, undefined, options);
  }

  /** The other end of a stream that somebody has opened. */
  static answer(hub: StreamHub, target: StreamTarget, options: StreamOptions = {}): Stream {
    return new Stream(hub, target.peer, target, options);
  }

  /** What the other end needs to know to answer. */
  get target(): StreamTarget {
    return { peer: this.#hub.peer, stream_id: this.streamId, window_bytes: this.#received.windowBytes };
  }

  /** Aborted, with a SandgateError as reason, when the stream breaks: nobody reads any more, and nothing more comes. */
  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  get isOver(): boolean {
    return this.#phase === "over";
  }

  /** Waits until the other end has room for more. @throws {SandgateError} when the stream is broken */
  async room(): Promise<void> {
    await this.#sent.room(() => this.#stop.signal.aborted);
    this.#stop.signal.throwIfAborted();
  }

  /** Sends bytes as one frame, after waiting for room; may overshoot the credit by less than this frame. @throws {SandgateError} */
  async write(payload: Uint8Array): Promise<void> {
    await this.room();
    this.push(payload);
    this.#stop.signal.throwIfAborted();
  }

  /** Sends bytes, which may come in parts, as one frame whatever the other end has room for. Never throws. */
  push(...payload: Uint8Array[]): void {
    this.#send({}, ...payload);
  }

  /** Sends a message, numbered like data. Never throws. */
  say(message: unknown): void {
    this.#send({ message });
  }

  /**
   * Sends what a source gives, which is asked for more only while there is room; once nobody reads, it is emptied, so that
   * whoever writes to it can end.
   *
   * @param convert what is sent for a piece; undefined for nothing
   */
  async pump(source: { next(): Promise<Buffer | undefined> }, convert = (piece: Buffer): Buffer | undefined => piece): Promise<void> {
    for (;;) {
      if (!this.#stop.signal.aborted) await this.room().catch(() => {});
      const piece = await source.next();
      if (!piece) return;
      const bytes = convert(piece);
      if (bytes && !this.#stop.signal.aborted) this.push(bytes);
    }
  }

  /** The last frame: everything was sent. */
  end(summary: unknown): void {
    if (this.#phase !== "open") return;
    this.#send({ end: { bytes: this.#sent.bytes, summary } });
    this.#saidAll();
  }

  /** The last frame: something broke. */
  fail(error: SandgateError): void {
    if (this.#phase !== "open") return;
    this.#send({ fail: error.toWire() });
    if (this.#hasLastWord) this.#break(error);
    else this.#saidAll();
  }

  /**
   * Gives the bytes in order and returns the other end's summary.
   *
   * @throws {SandgateError} what the other end reported, or why the stream is broken
   */
  async *read(): AsyncGenerator<Uint8Array, unknown, undefined> {
    if (!this.#inbox) throw new Error("the listener of this stream has all that comes");
    for (;;) {
      const item = await this.#inbox.next();
      if (item.kind === "broken") throw item.error;
      if (item.kind === "ended") return item.summary;
      yield item.payload;
      this.#read(item.payload.length);
    }
  }

  /** Reads to the end, each piece when the one before was taken. @returns the other end's summary. @throws as `read` */
  async readEach(take: (payload: Uint8Array) => unknown = () => {}): Promise<unknown> {
    const items = this.read();
    let next = await items.next();
    for (; !next.done; next = await items.next()) await take(next.value);
    return next.value;
  }

  /** Does something for this stream that `stop` ends when the stream breaks. */
  whileOpen<T>(stop: (error: SandgateError) => void, work: () => Promise<T>): Promise<T> {
    return stoppedBy(this.#stop.signal, (reason) => stop(reason as SandgateError), work);
  }

  /** Breaks the stream: nobody reads any more, which the other end is told. Nothing where it is over. */
  cancel(reason: SandgateError): void {
    if (this.#phase === "over") return;
    this.#tell({ cancel: reason.toWire() });
    this.#inbox?.clear();
    this.#break(reason);
  }

  /** Leaves without a word, because the other end is told otherwise. */
  close(): void {
    this.#phase = "over";
    this.#hub.remove(this.streamId);
  }

  abort(error: SandgateError): void {
    if (this.#phase === "over") return;
    // An end that was only out of reach for a while must not go on for nobody.
    this.#tell({ cancel: error.toWire() });
    this.#break(error);
  }

  take({ seq, credit, cancel, message, end, fail }: FrameHeader, payload: Uint8Array): void {
    if (this.#phase === "over") return;
    if (credit !== undefined) this.#sent.grant(credit);
    if (cancel) return this.#break(SandgateError.fromWire(cancel));
    if (seq === undefined) return;
    this.#received.count(seq, payload.length);
    if (fail) return this.#heardFailure(SandgateError.fromWire(fail));
    if (end) return this.#heardAll(end);
    if (message !== undefined) return this.#listener.message(message);
    this.#listener.bytes(payload);
  }

  #heardAll({ bytes, summary }: NonNullable<FrameHeader["end"]>): void {
    this.#received.checkEnd(bytes);
    if (!this.#hasLastWord) this.close();
    this.#listener.ended(summary);
  }

  #heardFailure(error: SandgateError): void {
    if (this.#hasLastWord) this.#listener.broken(error);
    else this.#break(error);
  }

  #saidAll(): void {
    if (this.#phase === "open") this.#phase = "quiet";
    if (this.#hasLastWord) this.close();
  }

  #break(error: SandgateError): void {
    this.close();
    this.#stop.abort(error);
    this.#sent.wake();
    this.#listener.broken(error);
  }

  #read(bytes: number): void {
    const credit = this.#received.read(bytes);
    if (credit !== undefined && this.#phase !== "over") this.#tell({ credit });
  }

  /** What is not numbered. Without the bus, the other end has noticed by itself. */
  #tell(header: FrameHeader): void {
    try {
      this.#hub.send(this.remotePeer, this.streamId, header);
    } catch {
      // The hub has ended this stream or is about to.
    }
  }

  #send(header: FrameHeader, ...payload: Uint8Array[]): void {
    if (this.#phase !== "open") return;
    try {
      const bytes = payload.reduce((sum, { length }) => sum + length, 0);
      this.#hub.send(this.remotePeer, this.streamId, { seq: this.#sent.count(bytes), ...header }, ...payload);
    } catch (error) {
      this.#break(SandgateError.from(error));
    }
  }
}
