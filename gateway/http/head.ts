/**
 * Reads and validates the request head. uWebSockets.js uses the first of several headers of one name, and treats any
 * Transfer-Encoding as `chunked`. A proxy that reads such a request differently disagrees about where it ends, so a second
 * request can be smuggled inside the first. Ambiguous requests are therefore refused.
 */
import type { HttpRequest } from "uWebSockets.js";

/** The headers that the gateway reads, with the separator that joins repeated values; "" where the header must not be repeated. */
export const readHeaders = {
  accept: ", ",
  "content-encoding": "",
  "content-length": "",
  "content-type": "",
  cookie: "; ",
  host: "",
  "idempotency-key": "",
  "if-none-match": ", ",
  origin: "",
  "sec-fetch-mode": "",
  "sec-fetch-site": "",
  // Joined because one that is repeated is invalid, which is no reason to refuse the request.
  traceparent: ", ",
  tracestate: ", ",
  "transfer-encoding": "",
  "x-api-key": "",
  "x-sandgate-account": "",
  "x-csrf-token": "",
  "x-forwarded-for": ", ",
} as const;
export type ReadHeader = keyof typeof readHeaders;

/** With the names as they are here: to look up by one that has just come from the network takes V8 several times as long. */
const known: ReadonlyMap<string, { readonly name: ReadHeader; readonly separator: string }> = new Map(
  Object.entries(readHeaders).map(([name, separator]) => [name, { name: name as ReadHeader, separator }]),
);

export interface Head {
  readonly method: string;
  readonly headers: Readonly<Partial<Record<ReadHeader, string>>>;
  /** Why the request is refused; undefined when it is valid. */
  readonly fault: string | undefined;
}

/** RFC 9110, 5.6.2. */
const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const knownMethods: ReadonlySet<string> = new Set(["GET", "POST", "DELETE", "HEAD", "OPTIONS", "PUT", "PATCH"]);

// State of the request being read. uWebSockets.js calls back per header; module variables are cheaper than a closure per request.
let headers: Partial<Record<ReadHeader, string>> = {};
let repeated: string | undefined;

/** Reads all headers in one pass. Must be called before the server's handler returns. */
export function readHead(request: HttpRequest): Head {
  headers = {};
  repeated = undefined;
  request.forEach(takeHeader);
  const head = { method: request.getCaseSensitiveMethod(), headers };
  return { ...head, fault: repeated === undefined ? faultOf(head) : `the header ${repeated} must come only once` };
}

function takeHeader(nameAsSent: string, value: string): void {
  const header = known.get(nameAsSent);
  if (header === undefined) return;
  const { name, separator } = header;
  const former = headers[name];
  if (former === undefined) headers[name] = value;
  else if (separator === "") repeated = name;
  else headers[name] = former + separator + value;
}

function faultOf({ method, headers }: Pick<Head, "method" | "headers">): string | undefined {
  if (!knownMethods.has(method) && !token.test(method)) return "the method is not valid";
  const { "content-length": length, "transfer-encoding": encoding } = headers;
  if (length === undefined && encoding === undefined) return undefined;
  if (length !== undefined && encoding !== undefined) return "Content-Length and Transfer-Encoding must not come together";
  if (encoding !== undefined && encoding !== "chunked") return "the Transfer-Encoding must be chunked";
  if (length !== undefined && !/^\d{1,15}$/.test(length)) return "the Content-Length must be a whole number";
  if ((method === "GET" || method === "HEAD") && (encoding !== undefined || Number(length) > 0)) return `${method} takes no body`;
  return undefined;
}
