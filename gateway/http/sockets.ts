/** WebSockets as uWebSockets.js has them: its limits, and whom its events go to. */
import type { HttpRequest, us_socket_context_t, WebSocket, WebSocketBehavior } from "uWebSockets.js";
import { controlBytesMax } from "../../shared/stream/session/protocol.ts";

/** What `send` of uWebSockets.js returns when it has thrown the message away. */
const dropped = 2;
/**
 * Bytes that may wait for a slow client. Four windows of unacknowledged output: frames of few bytes each come with as
 * many bytes of headers again and again. A message beyond it is dropped, which `send` tells.
 */
const waitingBytesMax = 1024 * 1024;
/**
 * Seconds without anything from the client after which uWebSockets.js closes by itself. Our own pings notice that
 * earlier; this is for a client that does not even take a close.
 */
const silenceS = 120;

/** Somebody who has a WebSocket. Of an open socket `closed` comes exactly once, and nothing after it. */
export interface SocketHandler {
  opened(socket: Socket): void;
  /** The bytes are the handler's own. */
  received(bytes: Buffer, isBinary: boolean): void;
  /** An answer to a ping. */
  alive(): void;
  closed(): void;
}

interface Holder {
  readonly handler: SocketHandler;
}

/** An open WebSocket. It must not be used after `closed`. */
export class Socket {
  readonly #raw: WebSocket<Holder>;

  constructor(raw: WebSocket<Holder>) {
    this.#raw = raw;
  }

  /** False when the client is too slow: the message is lost. */
  send(message: string | Uint8Array): boolean {
    return this.#raw.send(message, typeof message !== "string") !== dropped;
  }

  ping(): void {
    this.#raw.ping();
  }

  end(code: number, reason: string): void {
    this.#raw.end(code, reason);
  }

  /** Closes without a word. */
  cut(): void {
    this.#raw.close();
  }
}

export type UserData = Holder;

/** What uWebSockets.js must be given to make a WebSocket of a request. */
export interface Upgrade {
  readonly key: string;
  readonly protocols: string;
  readonly extensions: string;
  readonly context: us_socket_context_t;
}

/** To be read before the server's handler returns. */
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
  // uWebSockets.js takes the memory back when this returns.
  message: (raw, message, isBinary) => raw.getUserData().handler.received(Buffer.from(message.slice(0)), isBinary),
  pong: (raw) => raw.getUserData().handler.alive(),
  close: (raw) => raw.getUserData().handler.closed(),
};
