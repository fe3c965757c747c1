/** The received part of an exchange: head, body, and whether a response is still wanted. */
import type { HttpRequest, HttpResponse } from "uWebSockets.js";
import type { SandgateError } from "../../shared/errors.ts";
import { errors } from "../../shared/known-errors.ts";
import { newId } from "../../shared/util/ids.ts";
import { inTrace, TraceContext } from "../../shared/util/trace-context.ts";
import { type BodyReader, noBody, UwsBody } from "./body.ts";
import { type Head, type ReadHeader, readHead } from "./head.ts";

/** How long a cancelled exchange may take to send its error before the connection is closed. */
const cancelMs = 1_000;

const none: readonly string[] = [];

export class Received {
  readonly requestId = newId("request");
  /** What the exchange is part of, and all that it causes. */
  trace: TraceContext;
  readonly method: string;
  /** Why the request must be answered by `refuse`; undefined for a valid one. */
  readonly fault: string | undefined;
  readonly query: string;
  readonly startedAtMs = performance.now();
  /** Path parameters in the order of the route pattern. */
  readonly params: readonly string[];
  /** Whether the client has disconnected. */
  aborted = false;
  /** Why the response is no longer wanted: the client has disconnected, or the exchange was cancelled. */
  unwanted: SandgateError | undefined;
  #over = false;
  /** Valid only until the server's handler returns; uWS reuses it then. */
  #request: HttpRequest | undefined;
  readonly #headers: Head["headers"];
  #body: BodyReader | undefined;
  /** For the body writers in this folder. */
  readonly raw: HttpResponse;
  // Created when first needed: an exchange that is answered at once needs neither.
  #onAbort: ((reason: SandgateError) => void)[] | undefined;
  #onDone: (() => void)[] | undefined;

  constructor(response: HttpResponse, request: HttpRequest, paramCount: number) {
    this.raw = response;
    this.#request = request;
    const { method, headers, fault } = readHead(request);
    this.method = method;
    this.#headers = headers;
    this.fault = fault;
    this.trace = new TraceContext(this.requestId, headers.traceparent, headers.tracestate);
    this.query = request.getQuery() ?? "";
    this.params = paramCount === 0 ? none : Array.from({ length: paramCount }, (_, index) => decode(request.getParameter(index) ?? ""));
  }

  /** Must be called when the server's handler returns: an unanswered exchange continues without uWS's request object. */
  detach(): void {
    if (!this.#over) {
      this.raw.onAborted(() => this.#abort());
      this.body; // Starts receiving now: the first bytes arrive right after the handler returns.
    }
    this.#request = undefined;
  }

  header(name: ReadHeader): string {
    return this.#headers[name] ?? "";
  }

  /** The path as it was sent. Available only until the handler first awaits something. */
  get path(): string {
    return this.#request?.getUrl() ?? "";
  }

  /** The client's IP address, from the last X-Forwarded-For entry if the proxy is trusted; empty after a disconnect. */
  address(trustProxy: boolean): string {
    const forwarded = trustProxy ? this.header("x-forwarded-for").split(",").at(-1)?.trim() : "";
    if (forwarded) return forwarded;
    return this.aborted || this.#over ? "" : Buffer.from(this.raw.getRemoteAddressAsText()).toString();
  }

  get body(): BodyReader {
    this.#body ??=
      this.method === "GET" || this.method === "HEAD"
        ? noBody
        : new UwsBody(this.raw, { length: this.header("content-length"), encoding: this.header("transfer-encoding") }, (listener) => this.onAbort(listener));
    return this.#body;
  }

  /** Whether the response is complete or the client has disconnected. */
  get over(): boolean {
    return this.#over;
  }

  /** Calls back when the client disconnects or the exchange is cancelled; at once if that has already happened. */
  onAbort(listener: (reason: SandgateError) => void): void {
    if (this.unwanted) listener(this.unwanted);
    else if (this.#onAbort) this.#onAbort.push(listener);
    else this.#onAbort = [listener];
  }

  /** Calls back when the exchange is over, whether answered or not. */
  onDone(listener: () => void): void {
    if (this.#over) inTrace(this.trace, listener);
    else if (this.#onDone) this.#onDone.push(listener);
    else this.#onDone = [listener];
  }

  /** Cancels the exchange. `onAbort` listeners get the reason; the connection is closed if they do not end it within a second. */
  cancel(reason: SandgateError): void {
    if (this.#over || this.unwanted) return;
    this.#giveUp(reason);
    const timer = setTimeout(() => !this.#over && this.raw.close(), cancelMs);
    this.onDone(() => clearTimeout(timer));
  }

  /** Combines the writes into one. Until the server's handler returns, uWS does so by itself. */
  corked(write: () => void): void {
    if (this.#request) write();
    else this.raw.cork(write);
  }

  /** Marks the exchange as over: the response is complete, or the connection was cut. */
  finished(): void {
    this.#over = true;
    const listeners = this.#onDone;
    // Perhaps called by uWebSockets.js.
    if (listeners) inTrace(this.trace, () => listeners.forEach((listener) => listener()));
  }

  #abort(): void {
    this.aborted = true;
    if (!this.unwanted) this.#giveUp(errors.clientGone());
    this.finished();
  }

  #giveUp(reason: SandgateError): void {
    this.unwanted = reason;
    if (this.#onAbort) for (const listener of this.#onAbort) listener(reason);
  }
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
