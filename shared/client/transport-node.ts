/**
 * HTTP with `node:http`. Node's own `fetch` gives up on a command that prints nothing for five minutes, and loses the answer
 * of a server that refuses an upload halfway.
 */
import type { Agent, ClientRequest, IncomingMessage } from "node:http";
import type { ByteStream, Transport, WireAnswer, WireRequest } from "./transport.ts";

/** Idle connections are closed before the server does so (after 10 s): a call sent at that moment would be lost. */
const keepAliveMs = 4_000;

type Http = typeof import("node:http") | typeof import("node:https");

/** `import` evaluates all of the module's properties, one of which loads Node's `fetch`: 0.15 s. Versions before 20.16 have nothing else. */
const load = async (name: "node:http" | "node:https"): Promise<Http> => process.getBuiltinModule?.(name) ?? import(name);

type Send = (request: WireRequest) => ClientRequest;

/** A transport with its own connections, through the Unix socket if given. Idle connections do not keep the process alive. */
export function nodeTransport(socketPath?: string): Transport {
  let plain: Promise<Send> | undefined;
  let tls: Promise<Send> | undefined;
  return async (request) => {
    if (request.url.protocol === "https:") tls ??= load("node:https").then((https) => sender(https, socketPath));
    else plain ??= load("node:http").then((http) => sender(http, socketPath));
    const send = await (request.url.protocol === "https:" ? tls : plain);
    return exchange(send as Send, request);
  };
}

function sender({ Agent, request }: Http, socketPath: string | undefined): Send {
  const where = socketPath === undefined ? {} : { socketPath };
  const agent = new Agent({ keepAlive: true, timeout: keepAliveMs, maxSockets: 256 }) as Agent;
  return ({ url, method, headers, body, signal }) => request(url, { ...where, agent, method, headers: { ...lengthOf(body), ...headers }, signal });
}

/** Always sent: Node omits the length for DELETE, and the server would then take the body for the next request. */
function lengthOf(body: WireRequest["body"]): Record<string, string> {
  return typeof body === "string" || body instanceof Uint8Array ? { "content-length": String(Buffer.byteLength(body)) } : {};
}

function exchange(send: Send, request: WireRequest): Promise<WireAnswer> {
  const { body, signal } = request;
  if (signal.aborted) return Promise.reject(signal.reason);
  return new Promise((resolve, reject) => {
    const sent = send(request);
    sent.once("response", (message) => {
      // A server that answers before it has the whole body reads no more of it, nor another call on this connection.
      message.once("close", () => sent.writableEnded || sent.destroy());
      resolve(answerOf(message, signal));
    });
    // Stays registered: a connection can fail more than once, even after the answer has arrived.
    sent.on("error", (error) => reject(signal.aborted ? signal.reason : error));
    if (body === undefined || typeof body === "string" || body instanceof Uint8Array) return void sent.end(body);
    sendPieces(sent, body).catch((error: unknown) => {
      reject(error);
      sent.destroy();
    });
  });
}

/** @throws if the source fails; the request itself reports a broken connection */
async function sendPieces(sent: ClientRequest, body: ByteStream): Promise<void> {
  // A server that refuses an upload answers before it has received everything.
  let isOver = false;
  const over = (): void => {
    isOver = true;
  };
  sent.once("response", over).once("close", over);
  for await (const piece of body) {
    if (isOver) return;
    if (!sent.write(piece)) await drained(sent);
  }
  if (!isOver) sent.end();
}

function drained(sent: ClientRequest): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      for (const name of ["drain", "response", "close"]) sent.off(name, done);
      resolve();
    };
    for (const name of ["drain", "response", "close"]) sent.once(name, done);
  });
}

function answerOf(message: IncomingMessage, signal: AbortSignal): WireAnswer {
  return { status: message.statusCode ?? 0, headers: headersOf(message), body: bytesOf(message, signal) };
}

/** The headers as a `fetch` object. */
export function headersOf({ rawHeaders }: IncomingMessage): Headers {
  const headers = new Headers();
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) headers.append(rawHeaders[at] as string, rawHeaders[at + 1] as string);
  return headers;
}

async function* bytesOf(message: IncomingMessage, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  try {
    for await (const piece of message) yield piece as Uint8Array;
  } catch (error) {
    throw signal.aborted ? signal.reason : error;
  }
}
