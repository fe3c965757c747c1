/** One WebSocket, implemented for Node and for browsers. */

export interface SocketListener {
  /** Text unchanged, binary data as a view that belongs to the listener. */
  message(data: string | Uint8Array): void;
  /** Called once, with the close code; 1006 if the connection broke. */
  close(code: number): void;
}

export interface SessionSocket {
  /** Listens for everything that arrives from now on. Call it before sending anything. */
  listen(listener: SocketListener): void;
  /** No-op once the socket is closed. */
  send(data: string | Uint8Array): void;
  close(): void;
}

/** The address of a session, and the caller's credentials. */
export interface SocketTarget {
  readonly url: URL;
  /** The Unix socket to connect to instead of the URL's host. Not in browsers. */
  readonly socketPath?: string | undefined;
  /** Not in browsers, which cannot send headers. */
  readonly headers: Readonly<Record<string, string>>;
  /** Timeout for opening in milliseconds. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
}

/** Opens a WebSocket. @throws {APIError} */
export type OpenSocket = (target: SocketTarget) => Promise<SessionSocket>;

/** The part of the WebSocket interface that the package `ws` and browsers share. */
export interface WebSocketLike {
  binaryType: string;
  readonly readyState: number;
  send(data: string | Uint8Array): void;
  close(code?: number): void;
  addEventListener(name: "message", listener: (event: { data: unknown }) => void): void;
  addEventListener(name: "close", listener: (event: { code: number }) => void): void;
}

const openState = 1;

export function sessionSocket(socket: WebSocketLike): SessionSocket {
  socket.binaryType = "arraybuffer";
  return {
    listen({ message, close }) {
      socket.addEventListener("message", ({ data }) => message(typeof data === "string" ? data : new Uint8Array(data as ArrayBuffer)));
      socket.addEventListener("close", ({ code }) => close(code));
    },
    send(data) {
      if (socket.readyState === openState) socket.send(data);
    },
    close() {
      socket.close(1000);
    },
  };
}
