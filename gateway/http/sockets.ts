/** Adapter for the WebSockets of uWebSockets.js: their limits, and the dispatch of events to handlers. */
import type { HttpRequest, us_socket_context_t, WebSocket, WebSocketBehavior } from "uWebSockets.js";
import { controlBytesMax } from "../../shared/stream/session/protocol.ts";

/** What `send` of uWebSockets.js returns for a dropped message. */
const dropped = 2;
/**
 * Bytes that may wait for a slow client: four windows of unacknowledged output, because the headers of very small frames
 * take as many bytes as their content. A message beyond this is dropped, and `send` reports it.
 */
const waitingBytesMax = 1024 * 1024;
/**
 * Seconds of silence from the client after which uWebSockets.js closes the connection by itself. Our own pings detect a
 * dead client earlier; this is for a client that does not even accept a close frame.
 */
const silenceS = 120;

/** Receives the events of one WebSocket. After `opened`, `closed` is called exactly once, and nothing after it. */
export interface SocketHandler {
  opened(socket: Socket): void;
  /** The bytes belong to the handler. */
  received(bytes: Buffer, isBinary: boolean): void;
  /** Called for each pong. */
  alive(): void;
  closed(): void;
}

interface Holder {
  readonly handler: SocketHandler;
}

/** An open WebSocket. Must not be used after `closed`. */
export class Socket {
  readonly #raw: WebSocket<Holder>;

  constructor(raw: WebSocket<Holder>) {
    this.#raw = raw;
  }

  /** Returns false when the client is too slow and the message was dropped. */
  send(message: string | Uint8Array): boolean {
    return this.#raw.send(message, typeof message !== "string") !== dropped;
  }

  ping(): void {
    this.#raw.ping();
  }

  end(code: number, reason: string): void {
    this.#raw.end(code, reason);
  }

  /** Closes the connection without a close frame. */
  cut(): void {
    this.#raw.close();
  }
}

export type UserData = Holder;

/** What uWebSockets.js needs to upgrade a request to a WebSocket. */
export interface Upgrade {
  readonly key: string;
  readonly protocols: string;
  readonly extensions: string;
  readonly context: us_socket_context_t;
}

/** Must be called before the server's handler returns. */
export function upgradeOf(request: HttpRequest, context: us_socket_context_t): Upgrade {
  const header = (name: string): string => request.getHeader(`sec-websocket-${name}`);
  return { key: header("key"), protocols: header("protocol"), extensions: header("extensions"), context };
}

export const socketBehavior: WebSocketBehavior<Holder> = {
  maxPayloadLength: controlBytesMax,
  maxBackpressure: waitingBytesMax,
  closeOnBackpressureLimit: false,
  idleTimeout: silenceS,
  sendPingsAutomatically: false,
  open: (raw) => raw.getUserData().handler.opened(new Socket(raw)),
  // The message's memory belongs to uWebSockets.js and is reused after this returns.
  message: (raw, message, isBinary) => raw.getUserData().handler.received(Buffer.from(message.slice(0)), isBinary),
  pong: (raw) => raw.getUserData().handler.alive(),
  close: (raw) => raw.getUserData().handler.closed(),
};
