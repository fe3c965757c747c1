/** Browsers. */

import { Deadline, onAbort } from "../abort.ts";
import { subprotocol } from "../stream/session/protocol.ts";
import { APIConnectionError, APIConnectionTimeoutError, SandgateError } from "./errors.ts";
import type { Platform } from "./platform.ts";
import { type OpenSocket, sessionSocket, type WebSocketLike } from "./session/socket.ts";
import { fetchTransport } from "./transport-fetch.ts";

const noFiles = async (): Promise<never> => {
  throw new SandgateError("a browser cannot open files by path: use upload() and download()");
};

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

export const browserPlatform: Platform = {
  isBrowser: true,
  transport(socketPath) {
    if (socketPath !== undefined) throw new SandgateError("a browser has no Unix sockets");
    return fetchTransport((input, init) => globalThis.fetch(input, init));
  },
  // randomUUID is not available on pages without TLS.
  randomId: () => [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join(""),
  openSocket: openBrowserSocket,
  readFile: noFiles,
  writeFile: noFiles,
};
