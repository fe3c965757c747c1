/** The receiving end of a stream: grants the sender room as its reader takes the bytes. */

import type { StreamTarget } from "../bus/messages.ts";
import { SandgateError } from "../errors.ts";
import type { FrameHeader } from "./frame.ts";
import type { StreamEnd, StreamHub } from "./hub.ts";

type Item = { kind: "data"; payload: Uint8Array } | { kind: "end"; summary: unknown } | { kind: "error"; error: SandgateError };

export class StreamReceiver implements StreamEnd {
  readonly streamId: string;
  readonly #hub: StreamHub;
  readonly #windowBytes: number;
  readonly #queue: Item[] = [];
  #remotePeer = "";
  #expected = 0;
  #receivedBytes = 0;
  #takenBytes = 0;
  #grantedBytes: number;
  #closed = false;
  #arrival: PromiseWithResolvers<void> | undefined;

  /** @param windowBytes how many bytes may wait here at most, one frame of overshoot aside. */
  constructor(hub: StreamHub, windowBytes: number) {
    this.#hub = hub;
    this.#windowBytes = windowBytes;
    this.#grantedBytes = windowBytes;
    this.streamId = hub.newStreamId();
    hub.add(this.streamId, this);
  }

  /** What the sender needs to know to begin. */
  get target(): StreamTarget {
    return { peer: this.#hub.peer, stream_id: this.streamId, window_bytes: this.#windowBytes };
  }

  get remotePeer(): string {
    return this.#remotePeer;
  }

  /** Names the process that sends, so that credits reach it and its death ends the stream. */
  connectTo(peer: string): this {
    this.#remotePeer = peer;
    return this;
  }

  /**
   * Yields the bytes in order and returns the sender's summary.
   *
   * @throws {SandgateError} what the sender reported, or that frames were lost.
   */
  async *read(): AsyncGenerator<Uint8Array, unknown, undefined> {
    for (;;) {
      const item = await this.#next();
      if (item.kind === "error") throw item.error;
      if (item.kind === "end") return item.summary;
      yield item.payload;
      this.#taken(item.payload.length);
    }
  }

  /** Stops the sender: nobody reads any more. */
  cancel(reason: SandgateError): void {
    if (this.#closed) return;
    this.#close();
    this.#queue.length = 0;
    this.#put({ kind: "error", error: reason });
    this.#tell({ cancel: reason.toWire() });
  }

  take(header: FrameHeader, payload: Uint8Array): void {
    if (this.#closed || header.seq === undefined) return;
    if (header.seq !== this.#expected) return this.#broken(`expected frame ${this.#expected}, got ${header.seq}`);
    this.#expected++;
    if (header.fail) return this.#finish({ kind: "error", error: SandgateError.fromWire(header.fail) });
    if (header.end) {
      if (header.end.bytes !== this.#receivedBytes) return this.#broken(`expected ${header.end.bytes} bytes, got ${this.#receivedBytes}`);
      return this.#finish({ kind: "end", summary: header.end.summary });
    }
    this.#receivedBytes += payload.length;
    this.#put({ kind: "data", payload });
  }

  abort(error: SandgateError): void {
    if (this.#closed) return;
    // A sender that was only out of reach for a while must not go on for nobody.
    this.#tell({ cancel: error.toWire() });
    this.#finish({ kind: "error", error });
  }

  #broken(detail: string): void {
    const error = new SandgateError("unavailable", `part of the stream was lost (${detail})`);
    this.#tell({ cancel: error.toWire() });
    this.#finish({ kind: "error", error });
  }

  #finish(item: Item): void {
    this.#close();
    this.#put(item);
  }

  #close(): void {
    this.#closed = true;
    this.#hub.remove(this.streamId);
  }

  #put(item: Item): void {
    this.#queue.push(item);
    this.#arrival?.resolve();
    this.#arrival = undefined;
  }

  async #next(): Promise<Item> {
    for (;;) {
      const item = this.#queue.shift();
      if (item) return item;
      this.#arrival ??= Promise.withResolvers<void>();
      await this.#arrival.promise;
    }
  }

  #taken(bytes: number): void {
    this.#takenBytes += bytes;
    const grant = this.#takenBytes + this.#windowBytes;
    if (this.#closed || grant - this.#grantedBytes < this.#windowBytes / 2) return;
    this.#grantedBytes = grant;
    this.#tell({ credit: grant });
  }

  #tell(header: FrameHeader): void {
    if (!this.#remotePeer) return;
    try {
      this.#hub.send(this.#remotePeer, this.streamId, header);
    } catch {
      // The bus is gone; the hub has ended this stream or is about to.
    }
  }
}
