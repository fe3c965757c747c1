/** The WebSockets of browsers. They do not tell why a server refuses one. */
import { subprotocol } from "../../stream/session/protocol.ts";
import { APIConnectionError, APIConnectionTimeoutError } from "../errors.ts";
import { limit } from "../waiting.ts";
import { type OpenSocket, sessionSocket, type WebSocketLike } from "./socket.ts";

export const openBrowserSocket: OpenSocket = ({ url, timeoutMs, signal }) => {
  const limits = limit(signal, timeoutMs);
  const socket = new WebSocket(url, [subprotocol]);
  return new Promise<ReturnType<typeof sessionSocket>>((resolve, reject) => {
    const late = new APIConnectionTimeoutError(`no session at ${url.host} in ${timeoutMs} ms`);
    limits.signal.addEventListener("abort", () => reject(limits.isOver ? late : signal?.reason));
    socket.addEventListener("open", () => resolve(sessionSocket(socket as unknown as WebSocketLike)));
    socket.addEventListener("close", () => reject(new APIConnectionError(`no session at ${url.host}: the server is not there, or it has refused the token`)));
  })
    .catch((error: unknown) => {
      socket.close();
      throw error;
    })
    .finally(() => limits.release());
};
