/**
 * One end of a stream between two processes. Data and messages are numbered without gaps in both directions, so that losses
 * become errors and are never silent. Bytes are sent only within the credit that the other end has granted.
 *
 * The opener names the stream to the other end in a call. The other end decides when the stream is over: its `end` or `fail`
 * ends the stream, while those of the opener only mean that the opener sends no more.
 */
import { stoppedBy } from "../abort.ts";
import type { StreamTarget } from "../bus/contract/fields.ts";
import { SandgateError } from "../errors.ts";
import type { FrameHeader } from "./frame.ts";
import type { StreamEnd, StreamHub } from "./hub.ts";
import { ReceiveWindow } from "./receive-window.ts";
import { Inbox, SendWindow, type StreamListener } from "./window.ts";

interface StreamOptions {
  /** Bytes that may wait here to be read while they are read fast, plus at most one frame. Absent if no bytes are read, or a listener receives them. */
  readonly windowBytes?: number;
  /** The stream is cancelled after the other end has granted no credit for this long. */
  readonly stallMs?: number;
  /** Receives everything as it arrives; without a listener, use `read`. */
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
  /** `quiet`: this end has announced that it sends no more. */
  #phase: "open" | "quiet" | "over" = "open";

  /** @param asked the target named by the other end, if that opened the stream */
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
    this.#received = new ReceiveWindow(windowBytes, asked === undefined, hub.windows);
    hub.add(this.streamId, this);
    this.#read(0);
  }

  /** Opens a new stream to a process, which must then be told its `target`. */
  static open(hub: StreamHub, remotePeer: string, options: StreamOptions = {}): Stream {
    return new Stream(hub, remotePeer, undefined, options);
  }

  /** Creates this end of a stream that another process has opened. */
  static answer(hub: StreamHub, target: StreamTarget, options: StreamOptions = {}): Stream {
    return new Stream(hub, target.peer, target, options);
  }

  /** The address that the other end needs to answer. */
  get target(): StreamTarget {
    return { peer: this.#hub.peer, stream_id: this.streamId, window_bytes: this.#received.windowBytes };
  }

  /** Aborted, with a SandgateError as reason, when the stream breaks: it is no longer read, and nothing more arrives. */
  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  get isOver(): boolean {
    return this.#phase === "over";
  }

  /** Waits until the other end has room for more. @throws {SandgateError} if the stream is broken */
  async room(): Promise<void> {
    await this.#sent.room(() => this.#stop.signal.aborted);
    this.#stop.signal.throwIfAborted();
  }

  /** Bytes that the other end has room for now. */
  get roomBytes(): number {
    return this.#sent.roomBytes;
  }

  /** When bytes that are there are to be sent: see `StreamHub.turn`. */
  turn(): Promise<void> | undefined {
    return this.#hub.turn(this.streamId);
  }

  /** Waits for room, then sends bytes as one frame; may exceed the credit by less than this frame. @throws {SandgateError} */
  async write(payload: Uint8Array): Promise<void> {
    await this.room();
    const turn = this.turn();
    if (turn) await turn;
    this.push(payload);
    this.#stop.signal.throwIfAborted();
  }

  /** Sends bytes, in one or more parts whose memory may be used again at once, as one frame, regardless of the credit. Never throws. */
  push(...payload: Uint8Array[]): void {
    this.#send({}, ...payload);
  }

  /** Sends a message, numbered like data. Never throws. */
  say(message: unknown): void {
    this.#send({ message });
  }

  /** Sends the last frame: everything has been sent. */
  end(summary: unknown): void {
    if (this.#phase !== "open") return;
    this.#send({ end: { bytes: this.#sent.bytes, summary } });
    this.#saidAll();
  }

  /** Sends the last frame: this end has failed. */
  fail(error: SandgateError): void {
    if (this.#phase !== "open") return;
    this.#send({ fail: error.toWire() });
    if (this.#hasLastWord) this.#break(error);
    else this.#saidAll();
  }

  /**
   * Yields the bytes in order and returns the other end's summary.
   *
   * @throws {SandgateError} the failure reported by the other end, or the reason why the stream broke
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

  /** Reads to the end; each piece waits until `take` is done with the previous one. @returns the other end's summary. @throws as `read` */
  async readEach(take: (payload: Uint8Array) => unknown = () => {}): Promise<unknown> {
    const items = this.read();
    let next = await items.next();
    for (; !next.done; next = await items.next()) await take(next.value);
    return next.value;
  }

  /** Runs work for this stream, and calls `stop` if the stream breaks. */
  whileOpen<T>(stop: (error: SandgateError) => void, work: () => Promise<T>): Promise<T> {
    return stoppedBy(this.#stop.signal, (reason) => stop(reason as SandgateError), work);
  }

  /** Breaks the stream and tells the other end to stop. No-op if the stream is over. */
  cancel(reason: SandgateError): void {
    if (this.#phase === "over") return;
    this.#tell({ cancel: reason.toWire() });
    this.#inbox?.clear();
    this.#break(reason);
  }

  /** Leaves without notice, for when the other end learns of it in another way. */
  close(): void {
    this.#phase = "over";
    this.#received.close();
    this.#hub.remove(this.streamId);
  }

  abort(error: SandgateError): void {
    if (this.#phase === "over") return;
    // The other end may only have been unreachable for a while and must not go on sending to nobody.
    this.#tell({ cancel: error.toWire() });
    this.#break(error);
  }

  take({ seq, credit, cancel, message, end, fail }: FrameHeader, payload: Uint8Array): void {
    if (this.#phase === "over") return;
    if (credit !== undefined) this.#sent.grant(credit);
    if (cancel) return this.#break(SandgateError.fromWire(cancel));
    if (seq === undefined) return;
    if (!this.#received.count(seq, payload.length)) return;
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

  /** Sends a frame that is not numbered. If the bus is gone, the other end notices by itself. */
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
