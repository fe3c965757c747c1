/**
 * One client of a live session: relays messages between the client and the worker that runs the session. Output is
 * passed through unparsed. The gateway keeps no session state, so the next connection may go to any gateway.
 */

import { type SessionNotice, sessionCalls } from "../../shared/bus/contract/sessions.ts";
import { messageChecker } from "../../shared/bus/messages.ts";
import { SandgateError } from "../../shared/errors.ts";
import { errors } from "../../shared/known-errors.ts";
import type { ClientMessage } from "../../shared/schemas/sessions.ts";
import { decodeInput } from "../../shared/stream/session/frames.ts";
import { closeCodeOf, closeReasons, firstMessageMs, frameBytesMax, inputBytesMax, laterControlBytesMax } from "../../shared/stream/session/protocol.ts";
import { Stream } from "../../shared/stream/stream.ts";
import type { StreamListener } from "../../shared/stream/window.ts";
import { FramesLost } from "../../shared/stream/window.ts";
import { newId } from "../../shared/util/ids.ts";
import type { Logger } from "../../shared/util/log.ts";
import { currentTrace, inTrace } from "../../shared/util/trace-context.ts";
import type { Caller } from "../call.ts";
import type { Socket, SocketHandler } from "../http/sockets.ts";
import { type Ask, openOnWorker, type Parts, readClientMessage } from "./open.ts";
import { Outbox } from "./outbox.ts";
import type { OpenSocket, Pace, Sockets } from "./sockets.ts";

/** A close frame has room for a reason of 123 bytes. */
const closeReasonMax = 120;
/** The most acknowledgements that a client can save up to send at no cost. */
const unansweredMax = 10_000;

const checkNotice = messageChecker(sessionCalls.sessionAttach.stream.notice, "a notice of a session");

interface ConnectionParts extends Parts {
  readonly sockets: Sockets;
  readonly pace: Pace;
  readonly log: Logger;
}

export class SessionConnection implements SocketHandler, OpenSocket, StreamListener {
  readonly caller: Caller;
  readonly #parts: ConnectionParts;
  readonly #ask: Ask;
  /** The stream to the worker, opened by the client's first message. */
  #stream: Stream | undefined;
  #socket: Socket | undefined;
  #phase: "new" | "opening" | "open" | "over" = "new";
  #timer: NodeJS.Timeout | undefined;
  #isAlive = true;
  readonly #outbox = new Outbox();
  /** Of the call that was upgraded. What the worker says comes with none. */
  readonly #trace = currentTrace();
  /** Pieces of output that the client has not acknowledged. */
  #unanswered = 0;
  /** Bytes of input: sent by this client, taken by the command, and the session's input offset when the client joined. */
  #input = { sent: 0, taken: 0, base: 0 };

  constructor(parts: ConnectionParts, ask: Ask) {
    this.#parts = parts;
    this.#ask = ask;
    this.caller = ask.caller;
  }

  opened(socket: Socket): void {
    this.#socket = socket;
    this.#timer = setTimeout(() => this.fail(new SandgateError("invalid_request", "no start or attach came")), firstMessageMs);
    this.#parts.sockets.add(this);
  }

  received(bytes: Buffer, isBinary: boolean): void {
    this.#isAlive = true;
    try {
      if (isBinary) this.#takeInput(bytes);
      else this.#takeMessage(this.#read(bytes));
    } catch (error) {
      this.fail(SandgateError.from(error));
    }
  }

  alive(): void {
    this.#isAlive = true;
  }

  closed(): void {
    this.#socket = undefined;
    this.#end();
  }

  check(): void {
    if (!this.#isAlive) return this.#socket?.cut();
    this.#isAlive = false;
    this.#socket?.ping();
  }

  fail({ code, reason, message }: Pick<SandgateError, "code" | "reason" | "message">, closing?: keyof typeof closeReasons): void {
    this.#say({ type: "error", code, reason, message });
    this.#close(closing ? closeReasons[closing].code : closeCodeOf(code), message);
  }

  restart(): void {
    this.#close(closeReasons.restart.code, closeReasons.restart.meaning);
  }

  bytes(output: Uint8Array): void {
    this.#unanswered = Math.min(this.#unanswered + 1, unansweredMax);
    this.#deliver(output);
  }

  message(notice: unknown): void {
    this.#hear(checkNotice(notice));
  }

  /** The worker's last notice: how the session ended, or why this client was removed from it. */
  ended(notice: unknown): void {
    this.#hear(checkNotice(notice));
  }

  broken(error: SandgateError): void {
    if (this.#phase !== "over") this.fail(error, error instanceof FramesLost ? "outputLost" : undefined);
  }

  #read(bytes: Buffer): ClientMessage {
    if (this.#phase !== "new" && bytes.length > laterControlBytesMax) {
      throw new SandgateError("payload_too_large", `a text frame must be at most ${laterControlBytesMax} bytes once the session has begun`);
    }
    return readClientMessage(bytes.toString());
  }

  /** One acknowledgement per piece of output is free: the client has no control over how small a command's writes are. */
  #count(type: ClientMessage["type"] | "input"): void {
    if (type === "ack" && this.#unanswered > 0) this.#unanswered--;
    else this.#parts.pace.take(this, this.caller.limitKey, type);
  }

  #takeInput(frame: Buffer): void {
    this.#count("input");
    if (this.#phase === "new") throw new SandgateError("invalid_request", "start or attach must come before input");
    if (frame.length > frameBytesMax) throw new SandgateError("payload_too_large", `a binary frame must be at most ${frameBytesMax} bytes`);
    const bytes = decodeInput(frame);
    if (!bytes) throw new SandgateError("invalid_request", "a binary frame must begin with channel 0");
    if (this.#ask.readOnly) throw new SandgateError("forbidden", "this client may only read", { reason: "read_only" });
    this.#input.sent += bytes.length;
    if (this.#input.sent - this.#input.taken > inputBytesMax) {
      return this.fail(new SandgateError("rate_limited", `the command has not taken more than ${inputBytesMax} bytes of its input`), "inputOverflow");
    }
    this.#outbox.input(bytes);
  }

  #takeMessage(message: ClientMessage): void {
    this.#count(message.type);
    const isFirst = message.type === "start" || message.type === "attach";
    if (isFirst !== (this.#phase === "new")) {
      throw new SandgateError("invalid_request", isFirst ? "start and attach can only come first" : "start or attach must come first");
    }
    if (message.type === "start" || message.type === "attach") return this.#begin(message);
    if (message.type === "detach") return this.#close(closeReasons.done.code, "detached");
    if (message.type !== "ack" && this.#ask.readOnly) throw new SandgateError("forbidden", "this client may only read", { reason: "read_only" });
    if (message.type === "kill") this.#audit("kill");
    this.#outbox.message(message);
  }

  #begin(message: ClientMessage & { type: "start" | "attach" }): void {
    this.#phase = "opening";
    clearTimeout(this.#timer);
    const stream = Stream.open(this.#parts.hub, this.#ask.worker.peer, { listener: this });
    this.#stream = stream;
    const sessionId = message.type === "attach" ? message.session_id : newId("session");
    this.#ask.sessionId = sessionId;
    openOnWorker(this.#parts, { ...this.#ask, sessionId }, message, stream.target).catch((error: unknown) => {
      if (this.#phase === "over") return;
      this.#audit(message.type, SandgateError.from(error));
      this.fail(SandgateError.from(error));
    });
    this.#ask.action = message.type;
  }

  #hear(notice: SessionNotice): void {
    if (notice.type === "closed") return this.fail({ code: notice.code, reason: notice.error_reason, message: notice.message }, notice.reason);
    if (notice.type === "input_ack") this.#input.taken = Math.max(0, notice.offset - this.#input.base);
    if (notice.type === "started") this.#started(notice.input_offset);
    this.#say(notice);
    if (notice.type === "exit") this.#close(closeReasons.done.code, "the session has ended");
    else if (notice.type === "started" && this.#stream) this.#outbox.open(this.#stream);
  }

  #started(inputOffset: number): void {
    this.#phase = "open";
    this.#input.base = inputOffset;
    this.#audit(this.#ask.action ?? "attach");
  }

  #say(message: object): void {
    this.#deliver(JSON.stringify(message));
  }

  #deliver(message: string | Uint8Array): void {
    if (!this.#socket || this.#socket.send(message)) return;
    // The client must never see a gap, so it is disconnected: it attaches again and asks for the missing output.
    this.#close(closeReasons.outputLost.code, closeReasons.outputLost.meaning);
  }

  #close(code: number, why: string): void {
    const socket = this.#socket;
    this.#socket = undefined;
    this.#end();
    socket?.end(code, Buffer.from(why).subarray(0, closeReasonMax).toString("ascii"));
  }

  #end(): void {
    if (this.#phase === "over") return;
    this.#phase = "over";
    clearTimeout(this.#timer);
    this.#outbox.close();
    this.#parts.sockets.delete(this);
    this.#stream?.cancel(errors.clientGone());
  }

  #audit(action: string, error?: SandgateError): void {
    const { by, sandboxId, sessionId, readOnly } = this.#ask;
    const who = { account: by.account_id, by: this.caller.label, target: sandboxId, session: sessionId };
    const line = { event: "audit", action: `session ${action}`, ...who, ...(readOnly ? { read_only: true } : {}), result: error?.code ?? "ok" };
    inTrace(this.#trace, () => this.#parts.log.info(line, "a session"));
  }
}
