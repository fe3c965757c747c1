/** What came of a request, and how long anybody waits for its answer. */
import type { HttpRequest, HttpResponse } from "uWebSockets.js";
import { SandgateError } from "../../shared/errors.ts";
import { newId } from "../../shared/util/ids.ts";
import { type BodyReader, noBody, readerOf } from "./body.ts";
import { type Head, type ReadHeader, readHead } from "./head.ts";

/** A cancelled exchange has this long to say why before its connection is closed. */
const cancelMs = 1_000;

const none: readonly string[] = [];

export const clientGone = (): SandgateError => new SandgateError("unavailable", "the client went away");

export class Received {
  readonly requestId = newId("request");
  readonly method: string;
  /** Why this is no request that could be answered but by `refuse`. */
  readonly fault: string | undefined;
  readonly query: string;
  readonly startedAtMs = performance.now();
  /** Path parameters in the order of the pattern. */
  readonly params: readonly string[];
  /** Whether the client is gone. */
  aborted = false;
  /** Why nobody wants the answer any more: the client is gone, or we cancelled. */
  unwanted: SandgateError | undefined;
  #over = false;
  /** Only until the server's handler returns: uWS takes it back then. */
  #request: HttpRequest | undefined;
  readonly #headers: Head["headers"];
  #body: BodyReader | undefined;
  /** For the writers of bodies in this folder. */
  readonly raw: HttpResponse;
  // Made when first needed: an exchange that is answered at once has no use for them.
  #onAbort: ((reason: SandgateError) => void)[] | undefined;
  #onDone: (() => void)[] | undefined;

  constructor(response: HttpResponse, request: HttpRequest, paramCount: number) {
    this.raw = response;
    this.#request = request;
    const { method, headers, fault } = readHead(request);
    this.method = method;
    this.#headers = headers;
    this.fault = fault;
    this.query = request.getQuery() ?? "";
    this.params = paramCount === 0 ? none : Array.from({ length: paramCount }, (_, index) => decode(request.getParameter(index) ?? ""));
  }

  /** To be called when the server's handler returns: what is not answered by then goes on without uWS's request. */
  detach(): void {
    if (!this.#over) {
      this.raw.onAborted(() => this.#abort());
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
    return this.aborted || this.#over ? "" : Buffer.from(this.raw.getRemoteAddressAsText()).toString();
  }

  get body(): BodyReader {
    this.#body ??=
      this.method === "GET" || this.method === "HEAD"
        ? noBody
        : readerOf(this.raw, { length: this.header("content-length"), encoding: this.header("transfer-encoding") }, (listener) => this.onAbort(listener));
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
    const timer = setTimeout(() => !this.#over && this.raw.close(), cancelMs);
    this.onDone(() => clearTimeout(timer));
  }

  /** Writes in one go. As long as the server's handler has not returned, uWS does that by itself. */
  corked(write: () => void): void {
    if (this.#request) write();
    else this.raw.cork(write);
  }

  /** The answer is complete or was cut off by us. */
  finished(): void {
    this.#over = true;
    if (this.#onDone) for (const listener of this.#onDone) listener();
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

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
