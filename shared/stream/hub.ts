/** The streams of a process share one subscription. The hub passes each frame to the stream it belongs to. */

import { busLost } from "../bus/failures.ts";
import type { Bus } from "../bus/nats.ts";
import type { PeerWatch } from "../bus/presence.ts";
import { lastToken, subjects } from "../bus/subjects.ts";
import { SandgateError } from "../errors.ts";
import { errors } from "../known-errors.ts";
import { inBackground } from "../util/background.ts";
import { newId } from "../util/ids.ts";
import type { Logger } from "../util/log.ts";
import { decodeFrame, encodeFrame, type FrameHeader } from "./frame.ts";
import { FramesLost } from "./window.ts";

/** One end of a stream. */
export interface StreamEnd {
  readonly remotePeer: string;
  take(header: FrameHeader, payload: Uint8Array): void;
  /** The other end or the bus is gone; frames may have been lost. */
  abort(error: SandgateError): void;
}

export class StreamHub {
  readonly peer: string;
  readonly #bus: Bus;
  readonly #log: Logger;
  readonly #ends = new Map<string, StreamEnd>();

  constructor(bus: Bus, peers: PeerWatch, log: Logger) {
    this.peer = peers.peer;
    this.#bus = bus;
    this.#log = log;
    bus.subscribe(subjects.stream(this.peer, "*"), ({ subject, data }) => this.#dispatch(lastToken(subject), data));
    bus.onLost(() => this.#abort(() => true, busLost()));
    peers.onGone((peer) => {
      this.#abort((end) => end.remotePeer === peer, errors.workerLost());
    });
  }

  get open(): number {
    return this.#ends.size;
  }

  newStreamId(): string {
    return newId("stream");
  }

  add(streamId: string, end: StreamEnd): void {
    this.#ends.set(streamId, end);
  }

  remove(streamId: string): void {
    this.#ends.delete(streamId);
  }

  /** @throws {SandgateError} `unavailable`, `payload_too_large` */
  send(peer: string, streamId: string, header: FrameHeader, ...payload: Uint8Array[]): void {
    if (!this.#bus.connected) throw busLost();
    this.#bus.publish(subjects.stream(peer, streamId), encodeFrame(header, ...payload));
  }

  /** Ends every stream with the error, when the time for a shutdown is up. */
  abortAll(error: SandgateError): void {
    this.#abort(() => true, error);
  }

  #dispatch(streamId: string, message: Uint8Array): void {
    const end = this.#ends.get(streamId);
    if (!end) return;
    try {
      const { header, payload } = decodeFrame(message);
      end.take(header, payload);
    } catch (error) {
      if (!(error instanceof FramesLost)) this.#log.error({ err: error, stream: streamId }, "a stream frame could not be read");
      end.abort(SandgateError.from(error));
    }
  }

  #abort(concerns: (end: StreamEnd) => boolean, error: SandgateError): void {
    for (const end of [...this.#ends.values()]) if (concerns(end)) inBackground(this.#log, "a stream could not be ended", () => end.abort(error));
  }
}
