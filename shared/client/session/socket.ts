/** One WebSocket, as Node and browsers each open it. */

export interface SocketListener {
  /** Text as it is, bytes as a view that is the listener's own. */
  message(data: string | Uint8Array): void;
  /** Once, with the close code; 1006 when the connection broke. */
  close(code: number): void;
}

export interface SessionSocket {
  /** What arrives from now on; to be called before anything is sent. */
  listen(listener: SocketListener): void;
  /** Nothing happens once it is closed. */
  send(data: string | Uint8Array): void;
  close(): void;
}

/** Where a session is, and who comes. */
export interface SocketTarget {
  readonly url: URL;
  /** The Unix socket that stands for the host of the address. Not in browsers. */
  readonly socketPath?: string | undefined;
  /** Not in browsers, which cannot send any. */
  readonly headers: Readonly<Record<string, string>>;
  /** Milliseconds that opening may take. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
}

/** Opens a WebSocket. @throws {APIError} */
export type OpenSocket = (target: SocketTarget) => Promise<SessionSocket>;

/** The part of a WebSocket that the package `ws` and browsers have in common. */
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
