/** One client of a session, as the worker sees it: a stream in both directions with the gateway that has its socket. */

import type { StreamTarget } from "../../shared/bus/messages.ts";
import type { SessionNotice } from "../../shared/bus/sessions.ts";
import { SandgateError } from "../../shared/errors.ts";
import type { ClientMessage } from "../../shared/schemas/session-messages.ts";
import type { FrameHeader } from "../../shared/stream/frame.ts";
import type { StreamEnd, StreamHub } from "../../shared/stream/hub.ts";
import { outputHeader, outputPayloadMax } from "../../shared/stream/session/frames.ts";
import { type closeReasons, windowBytes } from "../../shared/stream/session/protocol.ts";
import type { OutputRing } from "./ring.ts";

/** What comes from the client; `closed` once, whoever ended it. */
export interface AttachmentEvents {
  message(from: Attachment, message: ClientMessage): void;
  input(from: Attachment, bytes: Uint8Array): void;
  closed(from: Attachment): void;
}

/** Output that a client was not sent, because it was not kept any more. */
interface Gap {
  readonly from: number;
  readonly bytes: number;
}

export class Attachment implements StreamEnd {
  readonly remotePeer: string;
  readonly #hub: StreamHub;
  readonly #streamId: string;
  readonly #events: AttachmentEvents;
  #sequence = 0;
  #expected = 0;
  #closed = false;
  /** Of the byte that is sent next. */
  #cursor = 0;
  #acknowledged = 0;
  #gaps: Gap[] = [];

  constructor(hub: StreamHub, target: StreamTarget, events: AttachmentEvents) {
    this.#hub = hub;
    this.#events = events;
    this.remotePeer = target.peer;
    this.#streamId = target.stream_id;
    hub.add(target.stream_id, this);
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** Output from this offset on is sent from now on. */
  startAt(offset: number): void {
    this.#cursor = offset;
    this.#acknowledged = offset;
  }

  /** Whether everything in the ring fits into the client's window, and more. */
  hasRoom(ring: OutputRing): boolean {
    return windowBytes - this.#inFlight() > ring.end - this.#cursor;
  }

  /** Sends what the window lets through. @returns whether the client has been sent everything. */
  sendFrom(ring: OutputRing): boolean {
    for (let room = windowBytes - this.#inFlight(); room > 0 && this.#cursor < ring.end && !this.#closed; room = windowBytes - this.#inFlight()) {
      if (this.#cursor < ring.start) this.#skipTo(ring.start);
      const piece = ring.read(this.#cursor, Math.min(room, outputPayloadMax));
      this.#send({}, outputHeader(piece), piece.bytes);
      this.#cursor += piece.bytes.length;
    }
    return this.#cursor >= ring.end;
  }

  /** The client has taken everything before this offset. @throws {SandgateError} `invalid_request` for what was never sent. */
  acknowledge(offset: number): void {
    if (offset > this.#cursor) throw new SandgateError("invalid_request", "ack: this offset was not sent yet");
    if (offset <= this.#acknowledged) return;
    this.#acknowledged = offset;
    this.#gaps = this.#gaps.filter(({ from }) => from >= offset);
  }

  tell(notice: SessionNotice): void {
    this.#send({ message: notice });
  }

  /** The last thing that the client is told. */
  finish(notice: SessionNotice): void {
    this.tell(notice);
    this.#close();
  }

  /** Ends it because of an error, or with a reason that says more than the error's code. */
  fail(error: Pick<SandgateError, "code" | "message" | "reason">, closing?: keyof typeof closeReasons): void {
    const reasons = { ...(error.reason ? { error_reason: error.reason } : {}), ...(closing ? { reason: closing } : {}) };
    this.finish({ type: "closed", code: error.code, message: error.message, ...reasons });
  }

  take(header: FrameHeader, payload: Uint8Array): void {
    if (this.#closed) return;
    if (header.cancel) return this.#close();
    if (header.seq !== this.#expected) return this.fail(new SandgateError("unavailable", "part of the input was lost on the way to the worker"));
    this.#expected++;
    if (header.message === undefined) this.#events.input(this, payload);
    // Its gateway has checked it.
    else this.#events.message(this, header.message as ClientMessage);
  }

  abort(): void {
    this.#close();
  }

  /** Bytes sent and not acknowledged. */
  #inFlight(): number {
    return this.#gaps.reduce((sum, { bytes }) => sum - bytes, this.#cursor - this.#acknowledged);
  }

  #skipTo(offset: number): void {
    this.tell({ type: "gap", from: this.#cursor, to: offset });
    this.#gaps.push({ from: this.#cursor, bytes: offset - this.#cursor });
    this.#cursor = offset;
  }

  #send(header: FrameHeader, ...payload: Uint8Array[]): void {
    if (this.#closed) return;
    try {
      this.#hub.send(this.remotePeer, this.#streamId, { seq: this.#sequence++, ...header }, ...payload);
    } catch {
      this.#close(); // The bus is gone: the client attaches again.
    }
  }

  #close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#hub.remove(this.#streamId);
    this.#events.closed(this);
  }
}
