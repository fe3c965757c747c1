/** One client of a session as the worker sees it: a stream in both directions to the gateway that holds its socket. */

import type { StreamTarget } from "../../shared/bus/contract/fields.ts";
import type { SessionNotice } from "../../shared/bus/contract/sessions.ts";
import { SandgateError } from "../../shared/errors.ts";
import type { ClientMessage } from "../../shared/schemas/sessions.ts";
import type { StreamHub } from "../../shared/stream/hub.ts";
import { outputHeader, outputPayloadMax } from "../../shared/stream/session/frames.ts";
import { type closeReasons, windowBytes } from "../../shared/stream/session/protocol.ts";
import { Stream } from "../../shared/stream/stream.ts";
import type { StreamListener } from "../../shared/stream/window.ts";
import type { OutputRing } from "./ring.ts";

/** What arrives from the client. `closed` comes once, whichever side ended it. */
interface Listener {
  message(from: Attachment, message: ClientMessage): void;
  input(from: Attachment, bytes: Uint8Array): void;
  closed(from: Attachment): void;
}

/** Output that a client missed because it was no longer kept. */
interface Gap {
  readonly from: number;
  readonly bytes: number;
}

export class Attachment implements StreamListener {
  readonly #stream: Stream;
  readonly #session: Listener;
  #hasLeft = false;
  /** Offset of the next byte to send. */
  #cursor = 0;
  #acknowledged = 0;
  #gaps: Gap[] = [];

  constructor(hub: StreamHub, target: StreamTarget, session: Listener) {
    this.#session = session;
    this.#stream = Stream.answer(hub, target, { listener: this });
  }

  get closed(): boolean {
    return this.#stream.isOver;
  }

  /** Sends output from this offset on. */
  startAt(offset: number): void {
    this.#cursor = offset;
    this.#acknowledged = offset;
  }

  /** Whether the client's window has room for more than everything in the ring. */
  hasRoom(ring: OutputRing): boolean {
    return windowBytes - this.#inFlight() > ring.end - this.#cursor;
  }

  /** Sends as much as the window allows. @returns whether the client has been sent everything. */
  sendFrom(ring: OutputRing): boolean {
    for (let room = windowBytes - this.#inFlight(); room > 0 && this.#cursor < ring.end && !this.closed; room = windowBytes - this.#inFlight()) {
      if (this.#cursor < ring.start) this.#skipTo(ring.start);
      const piece = ring.read(this.#cursor, Math.min(room, outputPayloadMax));
      this.#stream.push(outputHeader(piece), piece.bytes);
      this.#cursor += piece.bytes.length;
    }
    return this.#cursor >= ring.end;
  }

  /** The client has received everything before this offset. @throws {SandgateError} `invalid_request` if it was never sent. */
  acknowledge(offset: number): void {
    if (offset > this.#cursor) throw new SandgateError("invalid_request", "ack: this offset was not sent yet");
    if (offset <= this.#acknowledged) return;
    this.#acknowledged = offset;
    this.#gaps = this.#gaps.filter(({ from }) => from >= offset);
  }

  tell(notice: SessionNotice): void {
    this.#stream.say(notice);
  }

  /** Sends the client's last notice. */
  finish(notice: SessionNotice): void {
    this.#stream.end(notice);
    this.leave();
  }

  /** Ends it with an error, or with a reason that says more than the error's code. */
  fail(error: Pick<SandgateError, "code" | "message" | "reason">, closing?: keyof typeof closeReasons): void {
    const reasons = { ...(error.reason ? { error_reason: error.reason } : {}), ...(closing ? { reason: closing } : {}) };
    this.finish({ type: "closed", code: error.code, message: error.message, ...reasons });
  }

  /** Leaves without a notice. */
  leave(): void {
    this.#stream.close();
    if (this.#hasLeft) return;
    this.#hasLeft = true;
    this.#session.closed(this);
  }

  bytes(input: Uint8Array): void {
    this.#session.input(this, input);
  }

  message(message: unknown): void {
    // The gateway has checked the message.
    this.#session.message(this, message as ClientMessage);
  }

  ended(): void {
    this.leave();
  }

  /** The client is gone, or the bus is; in the latter case the client will attach again. */
  broken(): void {
    this.leave();
  }

  /** Bytes sent but not acknowledged. */
  #inFlight(): number {
    return this.#gaps.reduce((sum, { bytes }) => sum - bytes, this.#cursor - this.#acknowledged);
  }

  #skipTo(offset: number): void {
    this.tell({ type: "gap", from: this.#cursor, to: offset });
    this.#gaps.push({ from: this.#cursor, bytes: offset - this.#cursor });
    this.#cursor = offset;
  }
}
