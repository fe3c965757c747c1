/**
 * The streams of a process share one subscription, and with some processes one line beside it. The hub passes
 * each frame to the stream it belongs to.
 *
 * Where there is a line when a stream opens, this end sends all of the stream over it. If the line breaks, what the other end may
 * not have taken is sent again over NATS, and so is all that follows. Both ends decide that for themselves and take either way.
 */

import { busLost, onceRead } from "../bus/failures.ts";
import type { Bus } from "../bus/nats.ts";
import type { PeerWatch } from "../bus/presence.ts";
import { lastToken, subjects } from "../bus/subjects.ts";
import { SandgateError } from "../errors.ts";
import { errors } from "../known-errors.ts";
import { attempt } from "../util/attempt.ts";
import { inBackground } from "../util/background.ts";
import { newId } from "../util/ids.ts";
import type { Logger } from "../util/log.ts";
import { decodeFrame, encodeFrame, encodeHeader, type FrameHeader, newline } from "./frame.ts";
import type { StreamFrame } from "./line/frames.ts";
import type { Line } from "./line/line.ts";
import { Lines } from "./line/lines.ts";
import { Outflow } from "./outflow.ts";
import { WindowBudget } from "./receive-window.ts";
import { FramesLost } from "./window.ts";

/** How many streams that are not open are remembered as ended by their other end. Most of them have been closed here as well. */
const endedMax = 1_024;
const endBytesMax = 4_096;

/** One end of a stream. */
export interface StreamEnd {
  readonly remotePeer: string;
  take(header: FrameHeader, payload: Uint8Array): void;
  /** The other end or the bus is gone; frames may have been lost. */
  abort(error: SandgateError): void;
}

interface Open {
  readonly end: StreamEnd;
  /** What it goes over; undefined for NATS. */
  line: Line | undefined;
}

export class StreamHub {
  readonly peer: string;
  readonly windows: WindowBudget;
  readonly lines: Lines;
  readonly #outflow: Outflow;
  readonly #bus: Bus;
  readonly #log: Logger;
  readonly #open = new Map<string, Open>();
  /** The last frame of streams that are not open here, perhaps not yet: the call that opens one may still wait for something. */
  readonly #ended = new Map<string, FrameHeader>();

  /** @param windowsBytesMax what the windows of all streams may have together beyond the least of each */
  constructor(bus: Bus, peers: PeerWatch, log: Logger, windowsBytesMax: number) {
    this.peer = peers.peer;
    this.windows = new WindowBudget(windowsBytesMax);
    this.lines = new Lines(
      {
        heard: (from, streamId, message) => this.#dispatch(streamId, message, from),
        broken: (line, untaken) => {
          this.#goOnWithout(line, untaken);
          peers.doubt(line.peer);
        },
      },
      log,
    );
    this.#outflow = new Outflow(() => bus.connection.flush());
    this.#bus = bus;
    this.#log = log;
    bus.subscribe(subjects.stream(this.peer, "*"), ({ subject, data }) => this.#dispatch(lastToken(subject), data));
    bus.onLost(() => {
      this.#abort(() => true, busLost());
      this.#outflow.reset();
    });
    peers.onBroken((peer) => {
      this.#abort((end) => end.remotePeer === peer, busLost());
    });
    peers.onGone(async (peer) => {
      // The last frames of its streams may be unread on its line.
      await onceRead();
      this.#abort((end) => end.remotePeer === peer, errors.workerLost());
      this.lines.drop(peer);
    });
  }

  get open(): number {
    return this.#open.size;
  }

  newStreamId(): string {
    return newId("stream");
  }

  /** Opens an end. If the other one has ended meanwhile, this one is told so afterwards. */
  add(streamId: string, end: StreamEnd): void {
    this.#open.set(streamId, { end, line: this.lines.take(end.remotePeer) });
    const last = this.#ended.get(streamId);
    if (last && this.#ended.delete(streamId)) queueMicrotask(() => this.#give(streamId, end, last, new Uint8Array()));
  }

  remove(streamId: string): void {
    this.#open.delete(streamId);
  }

  /** @throws {SandgateError} `unavailable`, `payload_too_large` */
  send(peer: string, streamId: string, header: FrameHeader, ...payload: Uint8Array[]): void {
    if (!this.#bus.connected) throw busLost();
    const line = this.#open.get(streamId)?.line;
    if (line) line.send(streamId, [encodeHeader(header), ...payload]);
    else this.#publish(peer, streamId, encodeFrame(header, ...payload));
  }

  /**
   * Resolves when a stream that has bytes to send is to do so, at once; undefined if that is now. All that go the same way take
   * turns, so that little waits here to be sent.
   */
  turn(streamId: string): Promise<void> | undefined {
    return (this.#open.get(streamId)?.line ?? this.#outflow).turn();
  }

  /** Ends every stream with the error, when the time for a shutdown is up. */
  abortAll(error: SandgateError): void {
    this.#abort(() => true, error);
  }

  #publish(peer: string, streamId: string, frame: Uint8Array): void {
    this.#bus.publish(subjects.stream(peer, streamId), frame);
    this.#outflow.sent(frame.length);
  }

  /** The streams of a line that broke go on over NATS. */
  #goOnWithout(line: Line, untaken: readonly StreamFrame[]): void {
    for (const open of this.#open.values()) {
      if (open.line !== line) continue;
      open.line = undefined;
      this.lines.count("nats");
    }
    // Without the bus, its loss ends them.
    if (!this.#bus.connected) return;
    const sendAgain = ({ streamId, message }: StreamFrame): void => this.#publish(line.peer, streamId, message);
    inBackground(this.#log, "what was on a line could not be sent again", () => untaken.forEach(sendAgain));
  }

  /** @param from the process at the other end of the line that it came over, which speaks for its own streams only */
  #dispatch(streamId: string, message: Uint8Array, from?: string): void {
    const end = this.#open.get(streamId)?.end;
    if (!end) return this.#rememberEnd(streamId, message);
    if (from !== undefined && from !== end.remotePeer) return;
    try {
      const { header, payload } = decodeFrame(message);
      this.#give(streamId, end, header, payload);
    } catch (error) {
      this.#log.error({ err: error, stream: streamId }, "a stream frame could not be read");
      end.abort(SandgateError.from(error));
    }
  }

  #give(streamId: string, end: StreamEnd, header: FrameHeader, payload: Uint8Array): void {
    try {
      end.take(header, payload);
    } catch (error) {
      if (!(error instanceof FramesLost)) this.#log.error({ err: error, stream: streamId }, "a stream frame could not be taken");
      end.abort(SandgateError.from(error));
    }
  }

  /** Only a frame without a payload ends a stream. What cannot be read is for nobody. */
  #rememberEnd(streamId: string, message: Uint8Array): void {
    if (message.length > endBytesMax || message.at(-1) !== newline) return;
    const header = attempt(() => decodeFrame(message).header);
    if (!header?.cancel && !header?.fail) return;
    const [oldest] = this.#ended.keys();
    if (this.#ended.size >= endedMax && oldest !== undefined) this.#ended.delete(oldest);
    this.#ended.set(streamId, header);
  }

  #abort(concerns: (end: StreamEnd) => boolean, error: SandgateError): void {
    for (const { end } of [...this.#open.values()]) if (concerns(end)) inBackground(this.#log, "a stream could not be ended", () => end.abort(error));
  }
}
