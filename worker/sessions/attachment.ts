/** One client of a session, as the worker sees it: a stream in both directions with the gateway that has its socket. */

import type { StreamTarget } from "../../shared/bus/contract/fields.ts";
import type { SessionNotice } from "../../shared/bus/contract/sessions.ts";
import { SandgateError } from "../../shared/errors.ts";
import type { ClientMessage } from "../../shared/schemas/session-messages.ts";
import type { StreamHub } from "../../shared/stream/hub.ts";
import type { StreamListener } from "../../shared/stream/inbox.ts";
import { outputHeader, outputPayloadMax } from "../../shared/stream/session/frames.ts";
import { type closeReasons, windowBytes } from "../../shared/stream/session/protocol.ts";
import { Stream } from "../../shared/stream/stream.ts";
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

export class Attachment implements StreamListener {
  readonly #stream: Stream;
  readonly #events: AttachmentEvents;
  #hasLeft = false;
  /** Of the byte that is sent next. */
  #cursor = 0;
  #acknowledged = 0;
  #gaps: Gap[] = [];

  constructor(hub: StreamHub, target: StreamTarget, events: AttachmentEvents) {
    this.#events = events;
    this.#stream = Stream.answer(hub, target, { listener: this });
  }

  get closed(): boolean {
    return this.#stream.isOver;
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
    for (let room = windowBytes - this.#inFlight(); room > 0 && this.#cursor < ring.end && !this.closed; room = windowBytes - this.#inFlight()) {
      if (this.#cursor < ring.start) this.#skipTo(ring.start);
      const piece = ring.read(this.#cursor, Math.min(room, outputPayloadMax));
      this.#stream.push(outputHeader(piece), piece.bytes);
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
    this.#stream.say(notice);
  }

  /** The last thing that the client is told. */
  finish(notice: SessionNotice): void {
    this.#stream.end(notice);
    this.leave();
  }

  /** Ends it because of an error, or with a reason that says more than the error's code. */
  fail(error: Pick<SandgateError, "code" | "message" | "reason">, closing?: keyof typeof closeReasons): void {
    const reasons = { ...(error.reason ? { error_reason: error.reason } : {}), ...(closing ? { reason: closing } : {}) };
    this.finish({ type: "closed", code: error.code, message: error.message, ...reasons });
  }

  /** Leaves without a word. */
  leave(): void {
    this.#stream.close();
    if (this.#hasLeft) return;
    this.#hasLeft = true;
    this.#events.closed(this);
  }

  bytes(input: Uint8Array): void {
    this.#events.input(this, input);
  }

  message(message: unknown): void {
    // Its gateway has checked it.
    this.#events.message(this, message as ClientMessage);
  }

  ended(): void {
    this.leave();
  }

  /** The client has gone, or the bus, over which it attaches again. */
  broken(): void {
    this.leave();
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
}
