/** Calls to the server that served this page. The browser sends the session's cookie by itself. */
import { connectionLost, connectionWorks } from "./connection.ts";
import type { Session } from "./types.ts";

/** The server answered, and the answer is an error. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly requestId: string | undefined;
  /** Seconds, where the server said when to come back. */
  readonly retryAfterS: number | undefined;

  constructor(status: number, body: ErrorBody | undefined, headers: Headers) {
    super(body?.message ?? `The server answered with status ${status}.`);
    this.status = status;
    this.code = body?.code ?? "unknown";
    this.requestId = body?.request_id ?? headers.get("x-request-id") ?? undefined;
    this.retryAfterS = Number(headers.get("retry-after")) || undefined;
  }
}

/** No answer came. */
export class ConnectionError extends Error {
  constructor() {
    super("The server cannot be reached.");
  }
}

export interface CallOptions {
  readonly body?: unknown;
  readonly signal?: AbortSignal | undefined;
  /** The same call under the same key is carried out once. */
  readonly idempotencyKey?: string;
  /** Whether somebody is logged in is the question: a 401 or 403 is an answer like any other, not the end of the session. */
  readonly anonymous?: boolean;
}

interface ErrorBody {
  readonly code?: string;
  readonly message?: string;
  readonly request_id?: string;
}

interface Reactions {
  unauthorized(): void;
  suspended(message: string): void;
}

let csrfToken = "";
let reactions: Reactions = { unauthorized: () => {}, suspended: () => {} };

export function setCsrfToken(token: string): void {
  csrfToken = token;
}

/** What happens whenever a call learns that nobody is logged in, or that the account is suspended. */
export function reactWith(given: Reactions): void {
  reactions = given;
}

/** Headers of a request that changes something. */
export function changeHeaders(): Record<string, string> {
  return { "x-csrf-token": csrfToken };
}

/**
 * One JSON call.
 *
 * @throws {ApiError} with the server's words
 * @throws {ConnectionError} when there was no answer; an AbortError when `signal` ended the call
 */
export async function call<T>(method: string, path: string, options: CallOptions = {}): Promise<T> {
  const response = await send(method, path, options);
  return (await response.json()) as T;
}

/**
 * A call that makes something. Asking again for the same thing, because its answer was lost or an error, does not make
 * it twice; asking for something else is a call of its own.
 */
export function maker<T>(path: string): (body: object) => Promise<T> {
  let last = { text: "", key: "" };
  return (body) => {
    const text = JSON.stringify(body);
    if (text !== last.text) last = { text, key: randomKey() };
    return call<T>("POST", path, { body, idempotencyKey: last.key });
  };
}

/** `crypto.randomUUID` exists only on secure origins. */
function randomKey(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** As `call`, with the successful answer's body still unread. */
export async function send(method: string, path: string, options: CallOptions = {}): Promise<Response> {
  const response = await request(method, path, options);
  if (response.ok) return response;
  const error = await errorOf(response);
  if (method !== "GET" && (await tokenWasOld(error, options))) return checked(await request(method, path, options), options);
  throw report(error, options);
}

/** Turns an answer that is not a success into its error. */
export async function errorOf(response: Response): Promise<ApiError> {
  const body = (await response.json().catch(() => undefined)) as { error?: ErrorBody } | undefined;
  return new ApiError(response.status, body?.error, response.headers);
}

/** Tells the page about errors that concern all of it; returns the error. */
export function report(error: ApiError, { anonymous = false }: Pick<CallOptions, "anonymous"> = {}): ApiError {
  if (error.status === 401 && !anonymous) reactions.unauthorized();
  if (isSuspension(error) && !anonymous) reactions.suspended(error.message);
  return error;
}

export const isSuspension = (error: unknown): boolean => error instanceof ApiError && error.status === 403 && /suspended/i.test(error.message);

async function checked(response: Response, options: CallOptions): Promise<Response> {
  if (response.ok) return response;
  throw report(await errorOf(response), options);
}

async function request(method: string, path: string, { body, signal, idempotencyKey }: CallOptions): Promise<Response> {
  const headers = {
    ...(method === "GET" ? {} : changeHeaders()),
    ...(body === undefined ? {} : { "content-type": "application/json" }),
    ...(idempotencyKey ? { "idempotency-key": idempotencyKey } : {}),
  };
  try {
    const response = await fetch(path, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }), ...(signal ? { signal } : {}) });
    connectionWorks();
    return response;
  } catch (error) {
    if (signal?.aborted) throw error;
    connectionLost();
    throw new ConnectionError();
  }
}

/** Another tab may have logged in again, which gives this browser a new session with a new token. */
async function tokenWasOld(error: ApiError, { anonymous, signal }: CallOptions): Promise<boolean> {
  if (anonymous || error.status !== 403 || !/csrf/i.test(error.message)) return false;
  const response = await request("GET", "/v1/account", { signal });
  if (!response.ok) return false;
  const { csrf_token } = (await response.json()) as Session;
  const isNew = csrf_token !== csrfToken;
  csrfToken = csrf_token;
  return isNew;
}
