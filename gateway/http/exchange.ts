/** One HTTP request and its response. The only place that touches the uWebSockets.js response. */
import type { HttpRequest, HttpResponse, us_socket_context_t } from "uWebSockets.js";
import { SandgateError } from "../../shared/errors.ts";
import { newId } from "../../shared/ids.ts";
import type { Route } from "../routes.ts";
import { type BodyReader, noBody, readerOf } from "./body.ts";
import type { SocketHandler, UserData } from "./sockets.ts";
import { statusLine } from "./status.ts";

/** Headers that the gateway reads. */
const readHeaders = [
  "x-api-key",
  "cookie",
  "content-type",
  "content-length",
  "transfer-encoding",
  "idempotency-key",
  "origin",
  "host",
  "sec-fetch-site",
  "x-csrf-token",
  "x-forwarded-for",
  "if-none-match",
] as const;
type ReadHeader = (typeof readHeaders)[number];

/**
 * As much of a body that an answer made needless is received and dropped. To close at once would reset the
 * connection, and the client, still sending, would see that instead of the answer.
 */
const dropBytesMax = 64 * 1024 * 1024;
/** A cancelled exchange has this long to say why before its connection is closed. */
const cancelMs = 1_000;

const jsonType = "application/json; charset=utf-8";

export type Headers = Readonly<Record<string, string>>;

const clientGone = (): SandgateError => new SandgateError("unavailable", "the client went away");

/** What uWebSockets.js must be given to make a WebSocket of a request. */
interface Upgrade {
  readonly key: string;
  readonly protocols: string;
  readonly extensions: string;
  readonly context: us_socket_context_t;
}

export class Exchange {
  readonly requestId = newId("request");
  readonly method: string;
  readonly query: string;
  readonly startedAtMs = performance.now();
  /** Path parameters in the order of the pattern. */
  readonly params: readonly string[];
  /** Sent with every answer of this exchange. */
  commonHeaders: Headers | undefined;
  /** Sent as `RateLimit-Policy` and `RateLimit`. */
  rateLimit: { readonly policy: string; readonly state: string } | undefined;
  /** The status that was sent, 0 before. */
  status = 0;
  /** The code of the error that was sent. */
  errorCode: string | undefined;
  /** The route that answers it; undefined for a path that there is not. */
  route: Route | undefined;
  /** What the audit line says beside what the route and the caller tell; `made`: what has come of the target in the path. */
  audited: { account?: string; target?: string; made?: readonly string[] } | undefined;
  /** Whether the client is gone. */
  aborted = false;
  /** Why nobody wants the answer any more: the client is gone, or we cancelled. */
  unwanted: SandgateError | undefined;
  #over = false;
  /** Only until the server's handler returns: uWS takes it back then. */
  #request: HttpRequest | undefined;
  #headers: Readonly<Record<ReadHeader, string>> | undefined;
  #body: BodyReader | undefined;
  readonly #upgrade: Upgrade | undefined;
  readonly #response: HttpResponse;
  readonly #observe: (exchange: Exchange) => void;
  // Made when first needed: an exchange that is answered at once has no use for them.
  #onAbort: ((reason: SandgateError) => void)[] | undefined;
  #onDone: (() => void)[] | undefined;

  /**
   * @param observe sees the exchange at its end.
   * @param context of a request that asks for a WebSocket.
   */
  constructor(response: HttpResponse, request: HttpRequest, paramCount: number, observe: (exchange: Exchange) => void, context?: us_socket_context_t) {
    this.#response = response;
    this.#observe = observe;
    this.#request = request;
    this.method = request.getCaseSensitiveMethod();
    this.query = request.getQuery() ?? "";
    this.#upgrade = context && upgradeOf(request, context);
    this.params = paramCount === 0 ? none : Array.from({ length: paramCount }, (_, index) => decode(request.getParameter(index) ?? ""));
  }

  /** To be called when the server's handler returns: what is not answered by then goes on without uWS's request. */
  detach(): void {
    if (!this.#over) {
      this.#headers = copyHeaders(this.#request);
      this.#response.onAborted(() => this.#abort());
      this.body; // Its first bytes come right after this and must find somebody.
    }
    this.#request = undefined;
  }

  header(name: ReadHeader): string {
    return this.#headers?.[name] ?? this.#request?.getHeader(name) ?? "";
  }

  /** The path as it was sent; only until the first wait. */
  get path(): string {
    return this.#request?.getUrl() ?? "";
  }

  /** The client's IP address, by the last entry of X-Forwarded-For where a proxy is trusted; empty when it is gone. */
  address(trustProxy: boolean): string {
    const forwarded = trustProxy ? this.header("x-forwarded-for").split(",").at(-1)?.trim() : "";
    if (forwarded) return forwarded;
    return this.aborted || this.#over ? "" : Buffer.from(this.#response.getRemoteAddressAsText()).toString();
  }

  get body(): BodyReader {
    this.#body ??=
      this.method === "GET" || this.method === "HEAD"
        ? noBody
        : readerOf(this.#response, { length: this.header("content-length"), encoding: this.header("transfer-encoding") }, (listener) => this.onAbort(listener));
    return this.#body;
  }

  /** Whether the answer is complete or the client is gone. */
  get over(): boolean {
    return this.#over;
  }

  /** Calls back when the answer is not wanted any more: the client is gone, at once if it is already, or we cancel. */
  onAbort(listener: (reason: SandgateError) => void): void {
    if (this.unwanted) listener(this.unwanted);
    else if (this.#onAbort) this.#onAbort.push(listener);
    else this.#onAbort = [listener];
  }

  /** Calls back when the exchange is over, answered or not. */
  onDone(listener: () => void): void {
    if (this.#over) listener();
    else if (this.#onDone) this.#onDone.push(listener);
    else this.#onDone = [listener];
  }

  /** Ends it from our side. Whoever works on the answer is told why; the connection is closed if that takes long. */
  cancel(reason: SandgateError): void {
    if (this.#over || this.unwanted) return;
    this.#giveUp(reason);
    const timer = setTimeout(() => !this.#over && this.#response.close(), cancelMs);
    this.onDone(() => clearTimeout(timer));
  }

  /** A whole answer at once. The connection is kept unless too much of the request's body is still to come. */
  send(status: number, contentType: string, body: string | Uint8Array, headers?: Headers): void {
    if (this.aborted || this.status) return;
    this.corked(() => {
      this.begin(status, contentType, headers);
      if (status === 204 || status === 304) this.#response.endWithoutBody();
      else if (this.method === "HEAD") this.#endHead(Buffer.byteLength(body));
      else this.#response.end(body, this.body.restBytes > dropBytesMax);
    });
    this.finished();
  }

  sendJson(status: number, body: unknown, headers?: Headers): void {
    this.sendJsonText(status, JSON.stringify(body), headers);
  }

  /** JSON that is text, or its bytes, already. */
  sendJsonText(status: number, text: string | Uint8Array, headers?: Headers): void {
    this.send(status, jsonType, text, headers);
  }

  /** The subprotocols that a client offers which wants a WebSocket; undefined for any other call. */
  get protocols(): readonly string[] | undefined {
    return this.#upgrade?.protocols.split(",").map((protocol) => protocol.trim());
  }

  /** Makes a WebSocket of it. */
  upgrade(handler: SocketHandler, protocol: string): void {
    const upgrade = this.#upgrade;
    if (!upgrade || this.aborted || this.status) return;
    this.corked(() => this.begin(101, ""));
    // Not in the same go: where the socket stays at its place in memory, `cork` of uWebSockets.js 20 takes the WebSocket
    // for the answer that it was before, and now and then closes it.
    this.#response.upgrade<UserData>({ handler }, upgrade.key, protocol, upgrade.extensions, upgrade.context);
    this.finished();
  }

  /** The error envelope. */
  sendError(error: SandgateError, headers: Headers = {}): void {
    const retry: Headers = error.retryAfterS === undefined ? {} : { "retry-after": String(Math.ceil(error.retryAfterS)) };
    const body = { error: { code: error.code, message: error.message, request_id: this.requestId } };
    this.errorCode = error.code;
    this.sendJson(error.status, body, { ...retry, ...headers });
  }

  /** An answer to HEAD: the headers that GET would have. */
  sendHead(status: number, contentType: string, totalBytes: number | undefined, headers?: Headers): void {
    if (this.aborted || this.status) return;
    this.corked(() => {
      this.begin(status, contentType, headers);
      this.#endHead(totalBytes);
    });
    this.finished();
  }

  /** Status and headers of an answer whose body comes in pieces; to be called inside `corked`. */
  begin(status: number, contentType: string, headers?: Headers): void {
    this.status = status;
    this.body.discard();
    const response = this.#response.writeStatus(statusLine(status)).writeHeader("x-request-id", this.requestId);
    if (contentType) response.writeHeader("content-type", contentType);
    if (this.rateLimit) response.writeHeader("ratelimit-policy", this.rateLimit.policy).writeHeader("ratelimit", this.rateLimit.state);
    for (const name in this.commonHeaders) response.writeHeader(name, this.commonHeaders[name] as string);
    for (const name in headers) response.writeHeader(name, headers[name] as string);
  }

  /** Writes in one go. As long as the server's handler has not returned, uWS does that by itself. */
  corked(write: () => void): void {
    if (this.#request) write();
    else this.#response.cork(write);
  }

  /** For the writers of bodies in this folder. */
  get raw(): HttpResponse {
    return this.#response;
  }

  /** The answer is complete or was cut off by us. */
  finished(): void {
    if (this.#over) return;
    this.#over = true;
    if (this.#onDone) for (const listener of this.#onDone) listener();
    this.#observe(this);
  }

  /** Told the length itself, uWS takes the answer for unfinished and drops the connection's next request. */
  #endHead(totalBytes: number | undefined): void {
    if (totalBytes !== undefined) this.#response.writeHeader("content-length", String(totalBytes));
    this.#response.endWithoutBody();
  }

  #abort(): void {
    this.aborted = true;
    if (!this.unwanted) this.#giveUp(clientGone());
    this.finished();
  }

  #giveUp(reason: SandgateError): void {
    this.unwanted = reason;
    if (this.#onAbort) for (const listener of this.#onAbort) listener(reason);
  }
}

const none: readonly string[] = [];

function copyHeaders(request: HttpRequest | undefined): Readonly<Record<ReadHeader, string>> {
  return Object.fromEntries(readHeaders.map((name) => [name, request?.getHeader(name) ?? ""])) as Record<ReadHeader, string>;
}

function upgradeOf(request: HttpRequest, context: us_socket_context_t): Upgrade {
  const header = (name: string): string => request.getHeader(`sec-websocket-${name}`);
  return { key: header("key"), protocols: header("protocol"), extensions: header("extensions"), context };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
