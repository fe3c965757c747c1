/** WebSockets of browsers, which do not reveal why a server refuses one. */

import { Deadline, onAbort } from "../../abort.ts";
import { subprotocol } from "../../stream/session/protocol.ts";
import { APIConnectionError, APIConnectionTimeoutError } from "../errors.ts";
import { type OpenSocket, sessionSocket, type WebSocketLike } from "./socket.ts";

export const openBrowserSocket: OpenSocket = ({ url, timeoutMs, signal }) => {
  const deadline = new Deadline(signal, timeoutMs);
  const socket = new WebSocket(url, [subprotocol]);
  return new Promise<ReturnType<typeof sessionSocket>>((resolve, reject) => {
    const late = new APIConnectionTimeoutError(`no session at ${url.host} in ${timeoutMs} ms`);
    onAbort(deadline.signal, () => reject(deadline.isOver ? late : signal?.reason));
    socket.addEventListener("open", () => resolve(sessionSocket(socket as unknown as WebSocketLike)));
    socket.addEventListener("close", () => reject(new APIConnectionError(`no session at ${url.host}: the server is unreachable or has refused the token`)));
  })
    .catch((error: unknown) => {
      socket.close();
      throw error;
    })
    .finally(() => deadline.release());
};
