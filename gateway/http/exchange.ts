/** One HTTP request and its response. The only place that touches the uWebSockets.js response. */

import type { HttpRequest, HttpResponse, us_socket_context_t } from "uWebSockets.js";
import { STATUS_CODES } from "node:http";
import type { SandgateError } from "../../shared/errors.ts";
import { Received } from "./received.ts";
import { type SocketHandler, type Upgrade, type UserData, upgradeOf } from "./sockets.ts";

/**
 * As much of a body that an answer made needless is received and dropped. To close at once would reset the
 * connection, and the client, still sending, would see that instead of the answer.
 */
const dropBytesMax = 64 * 1024 * 1024;
/** An answer that closes the connection waits this long for a body that is still coming. */
const lingerMs = 2_000;
/**
 * More than uWebSockets.js holds back to send it together with other answers: such an answer is sent at once, and nothing
 * that came after the request in the same packet is taken for another one.
 */
const answerAtOnceBytes = 16 * 1024;

const statusLines = new Map(Object.entries(STATUS_CODES).map(([code, text]) => [Number(code), `${code} ${text}`]));
/** As uWebSockets.js wants it. */
export const statusLine = (status: number): string => statusLines.get(status) ?? String(status);

const noStore = "no-store";
const jsonType = "application/json; charset=utf-8";

/** Several values for one name are as many headers. */
export type Headers = Readonly<Record<string, string | readonly string[]>>;

/** What the server knows of the route that answers a request. */
export interface Endpoint {
  readonly method: "GET" | "POST" | "DELETE";
  readonly path: string;
  /** Whether it is answered by a WebSocket. */
  readonly socket?: boolean;
}

export class Exchange extends Received {
  /** What answers it; undefined for a path that there is not. */
  endpoint: Endpoint | undefined;
  /** Sent with every answer of this exchange. */
  commonHeaders: Headers | undefined;
  /** Sent as `RateLimit-Policy` and `RateLimit`. */
  rateLimit: { readonly policy: string; readonly state: string } | undefined;
  /** The status that was sent, 0 before. */
  status = 0;
  /** The code of the error that was sent. */
  errorCode: string | undefined;
  /** What the audit line says beside what the route and the caller tell; `made`: what has come of the target in the path. */
  audited: { account?: string; target?: string; made?: readonly string[] } | undefined;
  /**
   * The connection ends with the answer. After a chunked body it does in any case: uWebSockets.js reads those so leniently
   * that a server on the way may see another end, and what comes after it must not be taken for a request.
   */
  #closes: boolean;
  /** An answer waits for the end of the body. */
  #lingers = false;
  #mayClose = false;
  readonly #upgrade: Upgrade | undefined;
  readonly #observe: (exchange: Exchange) => void;

  /**
   * @param observe sees the exchange at its end.
   * @param context of a request that asks for a WebSocket.
   */
  constructor(response: HttpResponse, request: HttpRequest, paramCount: number, observe: (exchange: Exchange) => void, context?: us_socket_context_t) {
    super(response, request, paramCount);
    this.#observe = observe;
    this.#closes = this.header("transfer-encoding") !== "";
    this.#upgrade = context && upgradeOf(request, context);
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
      else this.raw.end(body, this.#closes);
    });
    this.finished();
  }

  /** Answers with an error and ends the connection, before anything else that has come on it is looked at. */
  refuse(error: SandgateError): void {
    this.status = error.status;
    this.errorCode = error.code;
    const text = JSON.stringify(this.#envelope(error));
    this.raw.writeStatus(statusLine(error.status)).writeHeader("x-request-id", this.requestId);
    this.raw.writeHeader("content-type", jsonType).writeHeader("cache-control", noStore);
    this.raw.end(`${text.padEnd(answerAtOnceBytes)}\n`, true);
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

  /** Sends these as well, whatever the answer is. */
  addHeaders(headers: Headers): void {
    this.commonHeaders = { ...this.commonHeaders, ...headers };
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
    this.raw.upgrade<UserData>({ handler }, upgrade.key, protocol, upgrade.extensions, upgrade.context);
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
    const response = this.raw.writeStatus(statusLine(status)).writeHeader("x-request-id", this.requestId);
    if (contentType) response.writeHeader("content-type", contentType);
    // Answers are for nobody's cache unless their handler says otherwise.
    if (headers?.["cache-control"] === undefined) response.writeHeader("cache-control", noStore);
    if (this.rateLimit) response.writeHeader("ratelimit-policy", this.rateLimit.policy).writeHeader("ratelimit", this.rateLimit.state);
    for (const name in this.commonHeaders) writeHeader(response, name, this.commonHeaders[name]);
    for (const name in headers) writeHeader(response, name, headers[name]);
  }

  override finished(): void {
    if (this.over) return;
    super.finished();
    this.#observe(this);
  }

  /** Told the length itself, uWS takes the answer for unfinished and drops the connection's next request. */
  #endHead(totalBytes: number | undefined): void {
    if (totalBytes !== undefined) this.raw.writeHeader("content-length", String(totalBytes));
    this.#endEmpty();
  }

  /** uWebSockets.js would need the length of what there is not to close the connection by itself. */
  #endEmpty(): void {
    if (this.#closes) this.raw.writeHeader("connection", "close").pause();
    this.raw.endWithoutBody();
  }

  /**
   * While the client still sends, to close would reset the connection before it has read the answer. So nothing more is read:
   * it sees that the connection ends, and if it does not close, uWebSockets.js does some seconds later.
   */
  #endEarly(body: string | Uint8Array): void {
    this.raw.writeHeader("connection", "close").pause();
    this.raw.end(body);
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
}

/** A line of its own, so that a shell's prompt comes after it. */
export const jsonLine = (value: unknown): string => `${JSON.stringify(value)}\n`;

function writeHeader(response: HttpResponse, name: string, value: string | readonly string[] | undefined): void {
  if (typeof value === "string") response.writeHeader(name, value);
  else for (const one of value ?? []) response.writeHeader(name, one);
}
