/**
 * The head of a request, read once and judged: uWebSockets.js takes the first of several equal headers, and any
 * Transfer-Encoding for `chunked`. Where another server on the way reads such a request differently, the two disagree on
 * where it ends, and a second request can be hidden in the first. So what has more than one reading is refused.
 */
import type { HttpRequest } from "uWebSockets.js";

/** Headers that the gateway reads, and what stands between the values of one that comes several times; "" where it must not. */
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
  "transfer-encoding": "",
  "x-api-key": "",
  "x-sandgate-account": "",
  "x-csrf-token": "",
  "x-forwarded-for": ", ",
} as const;
export type ReadHeader = keyof typeof readHeaders;

const separators: ReadonlyMap<string, string> = new Map(Object.entries(readHeaders));

export interface Head {
  readonly method: string;
  readonly headers: Readonly<Partial<Record<ReadHeader, string>>>;
  /** Why the request must not be taken for what it seems to be. */
  readonly fault: string | undefined;
}

/** RFC 9110, 5.6.2. */
const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const knownMethods: ReadonlySet<string> = new Set(["GET", "POST", "DELETE", "HEAD", "OPTIONS", "PUT", "PATCH"]);

// Of the request that is being read: uWebSockets.js calls back for each header, and a closure for each request costs more.
let headers: Partial<Record<ReadHeader, string>> = {};
let repeated: string | undefined;

/** One pass over all headers; to be called before the server's handler returns. */
export function readHead(request: HttpRequest): Head {
  headers = {};
  repeated = undefined;
  request.forEach(takeHeader);
  const head = { method: request.getCaseSensitiveMethod(), headers };
  return { ...head, fault: repeated === undefined ? faultOf(head) : `the header ${repeated} must come only once` };
}

function takeHeader(name: string, value: string): void {
  const separator = separators.get(name);
  if (separator === undefined) return;
  const former = headers[name as ReadHeader];
  if (former === undefined) headers[name as ReadHeader] = value;
  else if (separator === "") repeated = name;
  else headers[name as ReadHeader] = former + separator + value;
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
