/** One HTTP request and its response. The only place that touches the uWebSockets.js response. */
import type { HttpRequest, HttpResponse, us_socket_context_t } from "uWebSockets.js";
import { SandgateError } from "../../shared/errors.ts";
import { newId } from "../../shared/util/ids.ts";
import type { Route } from "../api/routes.ts";
import { type BodyReader, noBody, readerOf } from "./body.ts";
import { type Head, type ReadHeader, readHead } from "./head.ts";
import type { SocketHandler, UserData } from "./sockets.ts";
import { statusLine } from "./status.ts";

/**
 * As much of a body that an answer made needless is received and dropped. To close at once would reset the
 * connection, and the client, still sending, would see that instead of the answer.
 */
const dropBytesMax = 64 * 1024 * 1024;
/** A cancelled exchange has this long to say why before its connection is closed. */
const cancelMs = 1_000;

/** An answer that closes the connection waits this long for a body that is still coming. */
const lingerMs = 2_000;
/**
 * More than uWebSockets.js holds back to send it together with other answers: such an answer is sent at once, and nothing
 * that came after the request in the same packet is taken for another one.
 */
const answerAtOnceBytes = 16 * 1024;

const noStore = "no-store";
const jsonType = "application/json; charset=utf-8";

/** Several values for one name are as many headers. */
export type Headers = Readonly<Record<string, string | readonly string[]>>;

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
  /** Why this is no request that could be answered but by `refuse`. */
  readonly fault: string | undefined;
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
  /**
   * The connection ends with the answer. After a chunked body it does in any case: uWebSockets.js reads those so leniently
   * that a server on the way may see another end, and what comes after it must not be taken for a request.
   */
  #closes: boolean;
  /** An answer waits for the end of the body. */
  #lingers = false;
  #mayClose = false;
  /** Only until the server's handler returns: uWS takes it back then. */
  #request: HttpRequest | undefined;
  readonly #headers: Head["headers"];
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
    const { method, headers, fault } = readHead(request);
    this.method = method;
    this.#headers = headers;
    this.fault = fault;
    this.#closes = headers["transfer-encoding"] !== undefined;
    this.query = request.getQuery() ?? "";
    this.#upgrade = context && upgradeOf(request, context);
    this.params = paramCount === 0 ? none : Array.from({ length: paramCount }, (_, index) => decode(request.getParameter(index) ?? ""));
  }

  /** To be called when the server's handler returns: what is not answered by then goes on without uWS's request. */
  detach(): void {
    if (!this.#over) {
      this.#response.onAborted(() => this.#abort());
      this.body; // Its first bytes come right after this and must find somebody.
    }
    this.#request = undefined;
  }

  header(name: ReadHeader): string {
    return this.#headers[name] ?? "";
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

  /** A whole answer at once. The connection is kept unless it ends with this, or too much of the request's body is still to come. */
  send(status: number, contentType: string, body: string | Uint8Array, headers?: Headers): void {
    if (this.aborted || this.status || this.#lingers) return;
    if (this.#closes && !this.#mayClose) return this.#linger(() => this.send(status, contentType, body, headers));
    this.corked(() => {
      this.begin(status, contentType, headers);
      if (status === 204 || status === 304) this.#endEmpty();
      else if (this.method === "HEAD") this.#endHead(Buffer.byteLength(body));
      else if (!this.body.finished && (this.#closes || this.body.restBytes > dropBytesMax)) this.#endEarly(body);
      else this.#response.end(body, this.#closes);
    });
    this.finished();
  }

  /** Answers with an error and ends the connection, before anything else that has come on it is looked at. */
  refuse(error: SandgateError): void {
    this.status = error.status;
    this.errorCode = error.code;
    const text = JSON.stringify(this.#envelope(error));
    this.#response.writeStatus(statusLine(error.status)).writeHeader("x-request-id", this.requestId);
    this.#response.writeHeader("content-type", jsonType).writeHeader("cache-control", noStore);
    this.#response.end(`${text.padEnd(answerAtOnceBytes)}\n`, true);
    this.finished();
  }

  /** Whether the connection ends with the answer. */
  get closes(): boolean {
    return this.#closes;
  }

  /** From now on the connection ends with the answer. */
  closeAfter(): void {
    this.#closes = true;
  }

  sendJson(status: number, body: unknown, headers?: Headers): void {
    this.sendJsonText(status, jsonLine(body), headers);
  }

  /** JSON that is text, or its bytes, already; with the newline at its end. */
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
    this.errorCode = error.code;
    this.sendJson(error.status, this.#envelope(error), { ...retry, ...headers });
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
    // Answers are for nobody's cache unless their handler says otherwise.
    if (headers?.["cache-control"] === undefined) response.writeHeader("cache-control", noStore);
    if (this.rateLimit) response.writeHeader("ratelimit-policy", this.rateLimit.policy).writeHeader("ratelimit", this.rateLimit.state);
    for (const name in this.commonHeaders) writeHeader(response, name, this.commonHeaders[name]);
    for (const name in headers) writeHeader(response, name, headers[name]);
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
    this.#endEmpty();
  }

  /** uWebSockets.js would need the length of what there is not to close the connection by itself. */
  #endEmpty(): void {
    if (this.#closes) this.#response.writeHeader("connection", "close").pause();
    this.#response.endWithoutBody();
  }

  /**
   * While the client still sends, to close would reset the connection before it has read the answer. So nothing more is read:
   * it sees that the connection ends, and if it does not close, uWebSockets.js does some seconds later.
   */
  #endEarly(body: string | Uint8Array): void {
    this.#response.writeHeader("connection", "close").pause();
    this.#response.end(body);
  }

  /**
   * What the client still sends is taken first, within limits: to close earlier would reset the connection, and the answer
   * be lost. Then what has been read with the request must be through: while no answer is given, uWebSockets.js closes
   * the connection at a second request in it.
   */
  #linger(answer: () => void): void {
    this.#lingers = true;
    const goOn = (): void => {
      this.#lingers = false;
      this.#mayClose = true;
      answer();
    };
    void this.body.dropped(dropBytesMax, lingerMs).then(() => setImmediate(goOn));
  }

  #envelope({ code, reason, message }: SandgateError): object {
    return { error: { code, reason, message, request_id: this.requestId } };
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

/** A line of its own, so that a shell's prompt comes after it. */
export const jsonLine = (value: unknown): string => `${JSON.stringify(value)}\n`;

function writeHeader(response: HttpResponse, name: string, value: string | readonly string[] | undefined): void {
  if (typeof value === "string") response.writeHeader(name, value);
  else for (const one of value ?? []) response.writeHeader(name, one);
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
