/** One HTTP request and its response. The only place that touches the uWebSockets.js response. */

import type { HttpRequest, HttpResponse, us_socket_context_t } from "uWebSockets.js";
import type { SandgateError } from "../../shared/errors.ts";
import type { AuditedChange } from "../../shared/schemas/admin/audit.ts";
import { nodeHttp } from "../../shared/util/node-http.ts";
import { Received } from "./received.ts";
import { type SocketHandler, type Upgrade, type UserData, upgradeOf } from "./sockets.ts";

/**
 * How much of an unneeded request body is received and dropped. Closing at once would reset the connection, and a client
 * that is still sending would see the reset instead of the response.
 */
const dropBytesMax = 64 * 1024 * 1024;
/** How long a response that closes the connection waits for the rest of the request body. */
const lingerMs = 2_000;
/**
 * Larger than the buffer in which uWebSockets.js collects responses. A response of this size is sent at once, so bytes
 * that followed the request in the same packet are never parsed as another request.
 */
const answerAtOnceBytes = 16 * 1024;

const statusLines = new Map(Object.entries(nodeHttp.STATUS_CODES).map(([code, text]) => [Number(code), `${code} ${text}`]));
/** Status line in the form that uWebSockets.js expects, such as `404 Not Found`. */
export const statusLine = (status: number): string => statusLines.get(status) ?? String(status);

const noStore = "no-store";
const jsonType = "application/json; charset=utf-8";

/** A name with several values is sent as several headers. */
export type Headers = Readonly<Record<string, string | readonly string[]>>;

/** The part of a route that the HTTP server uses. */
export interface Endpoint {
  readonly method: "GET" | "POST" | "DELETE";
  readonly path: string;
  /** Whether the route upgrades to a WebSocket. */
  readonly socket?: boolean;
}

/** What a handler knows of a call for the audit. Never a secret. */
interface Audited {
  /** Whose call it turned out to be. */
  readonly account?: string;
  readonly target?: string;
  /** The account that the target belongs to, if it is another than the caller's. */
  readonly owner?: string;
  /** Ids of what was created from the target in the path. */
  readonly made?: readonly string[];
  /** The settings that were asked for. */
  readonly change?: AuditedChange;
}

/** Where a request came in. */
export interface Listener {
  /** Whether connections are to close after answers from now on. */
  readonly isClosing: boolean;
  /** Called when the exchange is over. */
  over(exchange: Exchange): void;
}

export class Exchange extends Received {
  /** The matched route; undefined for an unknown path. */
  endpoint: Endpoint | undefined;
  /** Sent with every response of this exchange. */
  commonHeaders: Headers | undefined;
  /** Sent as `RateLimit-Policy` and `RateLimit`. */
  rateLimit: { readonly policy: string; readonly state: string } | undefined;
  /** The status that was sent; 0 until then. */
  status = 0;
  /** The error code that was sent. */
  errorCode: string | undefined;
  /** Audit fields beyond those of route and caller. */
  audited: Audited | undefined;
  /**
   * Whether the connection closes after the response. Always after a chunked body: uWebSockets.js parses chunks so leniently
   * that a proxy may see a different end of the body, and bytes after it must not be parsed as a request.
   */
  #closes: boolean;
  /** A response is waiting for the end of the request body. */
  #lingers = false;
  #mayClose = false;
  readonly #upgrade: Upgrade | undefined;
  readonly #listener: Listener;

  /** @param context set for a WebSocket upgrade request. */
  constructor(response: HttpResponse, request: HttpRequest, paramCount: number, listener: Listener, context?: us_socket_context_t) {
    super(response, request, paramCount);
    this.#listener = listener;
    this.#closes = this.header("transfer-encoding") !== "";
    this.#upgrade = context && upgradeOf(request, context);
  }

  /** Sends a complete response. The connection stays open unless it is to close, or too much of the request body is still to come. */
  send(status: number, contentType: string, body: string | Uint8Array, headers?: Headers): void {
    if (this.aborted || this.status || this.#lingers) return;
    if (this.closes && !this.#mayClose) return this.#linger(() => this.send(status, contentType, body, headers));
    this.corked(() => {
      this.begin(status, contentType, headers);
      if (status === 204 || status === 304) this.#endEmpty();
      else if (this.method === "HEAD") this.#endHead(Buffer.byteLength(body));
      else if (!this.body.finished && (this.#closes || this.body.restBytes > dropBytesMax)) this.#endEarly(body);
      else this.raw.end(body, this.#closes);
    });
    this.finished();
  }

  /** Sends an error and closes the connection before any further bytes on it are parsed. */
  refuse(error: SandgateError): void {
    this.status = error.status;
    this.errorCode = error.code;
    const text = JSON.stringify(this.#envelope(error));
    this.raw.writeStatus(statusLine(error.status)).writeHeader("x-request-id", this.requestId);
    this.raw.writeHeader("content-type", jsonType).writeHeader("cache-control", noStore);
    this.raw.end(`${text.padEnd(answerAtOnceBytes)}\n`, true);
    this.finished();
  }

  /** Whether the connection closes after the response. Once the response has begun, that does not change: it could not be told. */
  get closes(): boolean {
    if (this.status === 0 && this.#listener.isClosing) this.#closes = true;
    return this.#closes;
  }

  /** Makes the connection close after the response. */
  closeAfter(): void {
    this.#closes = true;
  }

  /** Adds headers to whatever response is sent. */
  addHeaders(headers: Headers): void {
    this.commonHeaders = { ...this.commonHeaders, ...headers };
  }

  sendJson(status: number, body: unknown, headers?: Headers): void {
    this.sendJsonText(status, jsonLine(body), headers);
  }

  /** Sends JSON that is already serialized, including its final newline. */
  sendJsonText(status: number, text: string | Uint8Array, headers?: Headers): void {
    this.send(status, jsonType, text, headers);
  }

  /** The subprotocols offered by a WebSocket upgrade request; undefined for any other request. */
  get protocols(): readonly string[] | undefined {
    return this.#upgrade?.protocols.split(",").map((protocol) => protocol.trim());
  }

  /** Upgrades the connection to a WebSocket. */
  upgrade(handler: SocketHandler, protocol: string): void {
    const upgrade = this.#upgrade;
    if (!upgrade || this.aborted || this.status) return;
    this.corked(() => this.begin(101, ""));
    // Outside `corked`: when the upgraded socket keeps its address in memory, `cork` of uWebSockets.js 20 still treats it as
    // the HTTP response it was before, and sometimes closes it.
    this.raw.upgrade<UserData>({ handler }, upgrade.key, protocol, upgrade.extensions, upgrade.context);
    this.finished();
  }

  /** Sends the error envelope. */
  sendError(error: SandgateError, headers: Headers = {}): void {
    const retry: Headers = error.retryAfterS === undefined ? {} : { "retry-after": String(Math.ceil(error.retryAfterS)) };
    this.errorCode = error.code;
    this.sendJson(error.status, this.#envelope(error), { ...retry, ...headers });
  }

  /** Answers HEAD with the headers that GET would have. */
  sendHead(status: number, contentType: string, totalBytes: number | undefined, headers?: Headers): void {
    if (this.aborted || this.status) return;
    this.corked(() => {
      this.begin(status, contentType, headers);
      this.#endHead(totalBytes);
    });
    this.finished();
  }

  /** Writes status and headers. Must be called inside `corked`. */
  begin(status: number, contentType: string, headers?: Headers): void {
    this.status = status;
    this.body.discard();
    const response = status === 200 ? this.raw : this.raw.writeStatus(statusLine(status)); // 200 is what uWebSockets.js begins with.
    response.writeHeader("x-request-id", this.requestId + this.#usualHeaders(contentType, headers));
    for (const name in this.commonHeaders) writeHeader(response, name, this.commonHeaders[name]);
    for (const name in headers) writeHeader(response, name, headers[name]);
  }

  /**
   * The headers of every response, as they follow the value of the first: uWebSockets.js writes a value as it is, and a call for
   * each header would cost more than all else in the head of a cheap answer. No value is of a client's making.
   */
  #usualHeaders(contentType: string, headers: Headers | undefined): string {
    let lines = contentType && `\r\ncontent-type: ${contentType}`;
    // Responses are not cacheable unless their handler says otherwise.
    if (headers?.["cache-control"] === undefined) lines += `\r\ncache-control: ${noStore}`;
    if (this.rateLimit) lines += `\r\nratelimit-policy: ${this.rateLimit.policy}\r\nratelimit: ${this.rateLimit.state}`;
    return lines;
  }

  override finished(): void {
    if (this.over) return;
    super.finished();
    this.#listener.over(this);
  }

  /** The length goes into a plain header: if uWS is told it, uWS considers the response unfinished and drops the connection's next request. */
  #endHead(totalBytes: number | undefined): void {
    if (totalBytes !== undefined) this.raw.writeHeader("content-length", String(totalBytes));
    this.#endEmpty();
  }

  /** Closes by header and pause: uWebSockets.js itself could only close here if it were given a body length. */
  #endEmpty(): void {
    if (this.#closes) this.raw.writeHeader("connection", "close").pause();
    this.raw.endWithoutBody();
  }

  /**
   * Closing while the client still sends would reset the connection before the client has read the response. So reading stops
   * instead: the client sees `connection: close`, and if it does not close, uWebSockets.js does so some seconds later.
   */
  #endEarly(body: string | Uint8Array): void {
    this.raw.writeHeader("connection", "close").pause();
    this.raw.end(body);
  }

  /**
   * First receives the rest of the body, within limits: closing earlier would reset the connection and lose the response.
   * Then waits one turn of the event loop until the bytes read together with the request are parsed: while no response is
   * written, a second request among them makes uWebSockets.js close the connection.
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

/** JSON with a final newline, so that a shell prompt starts on a new line. */
export const jsonLine = (value: unknown): string => `${JSON.stringify(value)}\n`;

function writeHeader(response: HttpResponse, name: string, value: string | readonly string[] | undefined): void {
  if (typeof value === "string") response.writeHeader(name, value);
  else for (const one of value ?? []) response.writeHeader(name, one);
}
