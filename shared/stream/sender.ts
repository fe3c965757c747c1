/** The sending end of a stream: holds its caller back while the receiver has no room. */

import type { StreamTarget } from "../bus/messages.ts";
import { SandgateError } from "../errors.ts";
import type { FrameHeader } from "./frame.ts";
import type { StreamEnd, StreamHub } from "./hub.ts";

export class StreamSender implements StreamEnd {
  readonly remotePeer: string;
  readonly #hub: StreamHub;
  readonly #streamId: string;
  readonly #stop = new AbortController();
  #creditBytes: number;
  #sentBytes = 0;
  #sequence = 0;
  #finished = false;
  #room: PromiseWithResolvers<void> | undefined;

  constructor(hub: StreamHub, target: StreamTarget) {
    this.#hub = hub;
    this.remotePeer = target.peer;
    this.#streamId = target.stream_id;
    this.#creditBytes = target.window_bytes;
    hub.add(target.stream_id, this);
  }

  /** Aborted, with a SandgateError as reason, when nobody reads any more. */
  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  /** Waits until the receiver has room for more. Rejects when the stream is over. */
  async room(): Promise<void> {
    while (!this.#stop.signal.aborted && this.#sentBytes >= this.#creditBytes) {
      this.#room ??= Promise.withResolvers<void>();
      await this.#room.promise;
    }
    this.#stop.signal.throwIfAborted();
  }

  /** Sends bytes as one frame, after waiting for room; may overshoot the credit by less than this frame. */
  async write(payload: Uint8Array): Promise<void> {
    await this.room();
    this.#send({ seq: this.#sequence++ }, payload);
    this.#sentBytes += payload.length;
  }

  /** The last frame: everything was sent. */
  end(summary: unknown): void {
    this.#finish({ end: { bytes: this.#sentBytes, summary } });
  }

  /** The last frame: something broke. */
  fail(error: SandgateError): void {
    this.#finish({ fail: error.toWire() });
  }

  take(header: FrameHeader): void {
    if (header.credit !== undefined) this.#grant(header.credit);
    if (header.cancel) this.abort(SandgateError.fromWire(header.cancel));
  }

  abort(error: SandgateError): void {
    if (this.#finished) return;
    this.#finished = true;
    this.#hub.remove(this.#streamId);
    this.#stop.abort(error);
    this.#wake();
  }

  #grant(totalBytes: number): void {
    if (totalBytes <= this.#creditBytes) return;
    this.#creditBytes = totalBytes;
    this.#wake();
  }

  #wake(): void {
    this.#room?.resolve();
    this.#room = undefined;
  }

  /** Never throws: without the bus, the other end has noticed by itself. */
  #finish(header: FrameHeader): void {
    if (this.#finished) return;
    this.#finished = true;
    this.#hub.remove(this.#streamId);
    try {
      this.#send({ seq: this.#sequence++, ...header });
    } catch {
      return;
    }
  }

  #send(header: FrameHeader, ...payload: Uint8Array[]): void {
    this.#hub.send(this.remotePeer, this.#streamId, header, ...payload);
  }
}
