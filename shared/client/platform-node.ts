/** Node.js 18 and later. */
import { randomUUID } from "node:crypto";
import { open, rename, rm, stat } from "node:fs/promises";
import type { IncomingMessage } from "node:http";
import { connect } from "node:net";
import type { WebSocket } from "ws";
import { stoppedBy } from "../abort.ts";
import { pingMs, subprotocol } from "../stream/session/protocol.ts";
import { StallClock } from "../waiting.ts";
import { APIConnectionError, APIConnectionTimeoutError, type APIError, errorOfAnswer, SandgateError } from "./errors.ts";
import type { LocalFile, Platform } from "./platform.ts";
import { type OpenSocket, type SessionSocket, sessionSocket, type WebSocketLike } from "./session/socket.ts";
import type { ByteStream } from "./transport.ts";
import { headersOf, nodeTransport } from "./transport-node.ts";

const pieceBytes = 128 * 1024;

async function readFile(path: string): Promise<{ bytes: ByteStream; size: number }> {
  const info = await stat(path);
  if (!info.isFile()) throw new SandgateError(`${path} is not a file`);
  return { bytes: bytesOf(path, info.size), size: info.size };
}

/** @throws {SandgateError} if the file becomes shorter while it is read; bytes appended meanwhile are ignored */
async function* bytesOf(path: string, size: number): AsyncGenerator<Uint8Array> {
  const file = await open(path, "r");
  try {
    for (let at = 0; at < size; ) {
      const wanted = Math.min(pieceBytes, size - at);
      const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(wanted), 0, wanted, at);
      if (bytesRead === 0) throw new SandgateError(`${path} became shorter while it was read`);
      yield buffer.subarray(0, bytesRead);
      at += bytesRead;
    }
  } finally {
    await file.close();
  }
}

async function writeFile(path: string): Promise<LocalFile> {
  const temporary = `${path}.${randomUUID().slice(0, 8)}.part`;
  const file = await open(temporary, "wx");
  return {
    async write(bytes) {
      await file.writeFile(bytes);
    },
    async keep() {
      await file.close();
      await rename(temporary, path);
    },
    async drop() {
      await file.close().catch(() => {});
      await rm(temporary, { force: true });
    },
  };
}

/** A server that sends nothing for this long is considered gone. */
const silenceMaxMs = 2.5 * pingMs;
const bodyBytesMax = 64 * 1024;

export const openNodeSocket: OpenSocket = async ({ url, socketPath, headers, timeoutMs, signal }) => {
  if (signal?.aborted) throw signal.reason;
  const { WebSocket } = await import("ws");
  const local = socketPath === undefined ? {} : { createConnection: () => connect(socketPath) };
  const socket = new WebSocket(url, [subprotocol], { ...local, headers, perMessageDeflate: false, handshakeTimeout: timeoutMs });
  const stop = (): void => socket.terminate();
  return stoppedBy(signal, stop, () => opened(socket, url)).catch((error: unknown) => {
    throw signal?.aborted ? signal.reason : error;
  });
};

function opened(socket: WebSocket, url: URL): Promise<SessionSocket> {
  return new Promise((resolve, reject) => {
    // Never removed: after the opening, the close code says everything.
    socket.on("error", (error) => reject(errorOf(error, url)));
    socket.on("unexpected-response", (_request, answer) => {
      refusal(answer).then(reject, reject);
    });
    socket.once("open", () => {
      watch(socket);
      resolve(sessionSocket(socket as unknown as WebSocketLike));
    });
  });
}

function errorOf(error: Error, url: URL): APIError {
  const isTimeout = error.message.includes("handshake has timed out");
  return new (isTimeout ? APIConnectionTimeoutError : APIConnectionError)(`no session at ${url.host}: ${error.message || String(error)}`, {}, error);
}

async function refusal(answer: IncomingMessage): Promise<APIError> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of answer as AsyncIterable<Buffer>) {
    pieces.push(piece);
    bytes += piece.length;
    if (bytes > bodyBytesMax) break;
  }
  return errorOfAnswer(answer.statusCode ?? 0, headersOf(answer), Buffer.concat(pieces).toString("utf8"));
}

/** A connection can die silently; then the server's pings are missing. */
function watch(socket: WebSocket): void {
  const silence = new StallClock(silenceMaxMs, () => socket.terminate()).start();
  const alive = (): void => silence.progress();
  socket.on("ping", alive).on("message", alive);
  socket.once("close", () => silence.stop());
}

export const nodePlatform: Platform = {
  isBrowser: false,
  transport: nodeTransport,
  randomId: randomUUID,
  openSocket: openNodeSocket,
  readFile,
  writeFile,
};
