/** One HTTP request and its response. The only place that touches the uWebSockets.js response. */
import type { HttpRequest, HttpResponse } from "uWebSockets.js";
import type { SandgateError } from "../../shared/errors.ts";
import { newId } from "../../shared/ids.ts";
import { type BodyReader, readerOf } from "./body.ts";
import { statusLine } from "./status.ts";

/** Headers that the gateway reads; uWS forgets them as soon as the handler returns. */
type ReadHeader = "x-api-key" | "content-type" | "content-length" | "idempotency-key" | "origin" | "transfer-encoding";

/**
 * As much of a body that an answer made needless is received and dropped. To close at once would reset the
 * connection, and the client, still sending, would see that instead of the answer.
 */
const dropBytesMax = 64 * 1024 * 1024;

const jsonType = "application/json; charset=utf-8";

export type Headers = Readonly<Record<string, string>>;

export class Exchange {
  readonly requestId = newId("request");
  readonly method: string;
  readonly query: string;
  readonly startedAtMs = performance.now();
  /** Path parameters in the order of the pattern. */
  readonly params: readonly string[];
  readonly body: BodyReader;
  /** Sent with every answer of this exchange. */
  commonHeaders: Headers = {};
  /** The status that was sent, 0 before. */
  status = 0;
  aborted = false;
  readonly #response: HttpResponse;
  readonly #headers: Readonly<Record<ReadHeader, string>>;
  readonly #onAbort: (() => void)[] = [];
  readonly #onDone: (() => void)[] = [];

  constructor(response: HttpResponse, request: HttpRequest, paramCount: number) {
    this.#response = response;
    this.method = request.getCaseSensitiveMethod();
    this.query = request.getQuery() ?? "";
    this.params = Array.from({ length: paramCount }, (_, index) => decode(request.getParameter(index) ?? ""));
    this.#headers = copyHeaders(request);
    response.onAborted(() => this.#abort());
    this.body = readerOf(response, { length: this.#headers["content-length"], encoding: this.#headers["transfer-encoding"] }, (listener) =>
      this.onAbort(listener),
    );
  }

  header(name: ReadHeader): string {
    return this.#headers[name];
  }

  /** Calls back when the client is gone before the answer was complete, at once if it is gone already. */
  onAbort(listener: () => void): void {
    if (this.aborted) listener();
    else this.#onAbort.push(listener);
  }

  /** Calls back when the exchange is over, answered or not. */
  onDone(listener: () => void): void {
    this.#onDone.push(listener);
  }

  /** A whole answer at once. The connection is kept unless too much of the request's body is still to come. */
  send(status: number, contentType: string, body: string, headers: Headers = {}): void {
    if (this.aborted || this.status) return;
    this.#response.cork(() => {
      this.begin(status, contentType, headers);
      if (status === 204) this.#response.endWithoutBody();
      else if (this.method === "HEAD") this.#endHead(Buffer.byteLength(body));
      else this.#response.end(body, this.body.restBytes > dropBytesMax);
    });
    this.finished();
  }

  sendJson(status: number, body: unknown, headers: Headers = {}): void {
    this.sendJsonText(status, JSON.stringify(body), headers);
  }

  /** JSON that is text already. */
  sendJsonText(status: number, text: string, headers: Headers = {}): void {
    this.send(status, jsonType, text, headers);
  }

  /** The error envelope. */
  sendError(error: SandgateError, headers: Headers = {}): void {
    const retry: Headers = error.retryAfterS === undefined ? {} : { "retry-after": String(Math.ceil(error.retryAfterS)) };
    const body = { error: { code: error.code, message: error.message, request_id: this.requestId } };
    this.sendJson(error.status, body, { ...retry, ...headers });
  }

  /** An answer to HEAD: the headers that GET would have. */
  sendHead(status: number, contentType: string, totalBytes: number | undefined, headers: Headers = {}): void {
    if (this.aborted || this.status) return;
    this.#response.cork(() => {
      this.begin(status, contentType, headers);
      this.#endHead(totalBytes);
    });
    this.finished();
  }

  /** Status and headers of an answer whose body comes in pieces; to be called inside `cork`. */
  begin(status: number, contentType: string, headers: Headers): void {
    this.status = status;
    this.body.discard();
    const response = this.#response.writeStatus(statusLine(status)).writeHeader("x-request-id", this.requestId);
    if (contentType) response.writeHeader("content-type", contentType);
    for (const [name, value] of Object.entries({ ...this.commonHeaders, ...headers })) response.writeHeader(name, value);
  }

  /** For the writers of bodies in this folder. */
  get raw(): HttpResponse {
    return this.#response;
  }

  /** The answer is complete or was cut off by us. */
  finished(): void {
    for (const listener of this.#onDone.splice(0)) listener();
  }

  /** Told the length itself, uWS takes the answer for unfinished and drops the connection's next request. */
  #endHead(totalBytes: number | undefined): void {
    if (totalBytes !== undefined) this.#response.writeHeader("content-length", String(totalBytes));
    this.#response.endWithoutBody();
  }

  #abort(): void {
    this.aborted = true;
    for (const listener of this.#onAbort.splice(0)) listener();
    this.finished();
  }
}

/** Spelled out, because this runs for every request and a loop over the names takes ninety times as long. */
function copyHeaders(request: HttpRequest): Readonly<Record<ReadHeader, string>> {
  return {
    "x-api-key": request.getHeader("x-api-key"),
    "content-type": request.getHeader("content-type"),
    "content-length": request.getHeader("content-length"),
    "idempotency-key": request.getHeader("idempotency-key"),
    origin: request.getHeader("origin"),
    "transfer-encoding": request.getHeader("transfer-encoding"),
  };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
