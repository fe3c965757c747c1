/**
 * Calls to the server that served this page. The browser sends the session's cookie by itself: the one of whoever has
 * logged in last, in whatever tab. So every call names the account of this page, and the server refuses it for another.
 */

import type { CurrentAccount } from "../../../shared/schemas/accounts.ts";
import { connectionLost, connectionWorks } from "./connection.ts";

/** Who is logged in, as a browser is told. */
export type Session = Required<CurrentAccount>;

/** The server answered, and the answer is an error. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  /** What exactly, where the code alone does not tell. */
  readonly reason: string | undefined;
  readonly requestId: string | undefined;
  /** Seconds, where the server said when to come back. */
  readonly retryAfterS: number | undefined;

  constructor(status: number, body: ErrorBody | undefined, headers: Headers) {
    super(body?.message ?? `The server answered with status ${status}.`);
    this.status = status;
    this.code = body?.code ?? "unknown";
    this.reason = body?.reason;
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
  readonly reason?: string;
  readonly message?: string;
  readonly request_id?: string;
}

interface Reactions {
  unauthorized(): void;
  suspended(message: string): void;
  otherAccount(): void;
}

/** For whom this page calls: nobody before the log-in. */
interface Caller {
  readonly accountId: string;
  readonly csrfToken: string;
}

const nobody: Caller = { accountId: "", csrfToken: "" };
let caller = nobody;
let reactions: Reactions = { unauthorized: () => {}, suspended: () => {}, otherAccount: () => {} };

/** For whom all further calls are; undefined for nobody. */
export function callAs(session: Session | undefined): void {
  caller = session ? { accountId: session.account.id, csrfToken: session.csrf_token } : nobody;
}

/** What happens whenever a call learns that nobody is logged in, that it is somebody else, or that the account is suspended. */
export function reactWith(given: Reactions): void {
  reactions = given;
}

/** Headers that every request of this page must have. */
export function callerHeaders(method: string): Record<string, string> {
  const { accountId, csrfToken } = caller;
  const isRead = method === "GET" || method === "HEAD";
  return { ...(accountId ? { "x-sandgate-account": accountId } : {}), ...(isRead ? {} : { "x-csrf-token": csrfToken }) };
}

/** An address that the browser opens by itself, where no header can be set: it names the account of this page as well. */
export function ownAddress(path: string): URL {
  const url = new URL(path, location.origin);
  url.searchParams.set("account", caller.accountId);
  return url;
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
  if (error.reason === "other_account" && !anonymous) reactions.otherAccount();
  return error;
}

export const isSuspension = (error: unknown): error is ApiError => error instanceof ApiError && error.reason === "suspended";

async function checked(response: Response, options: CallOptions): Promise<Response> {
  if (response.ok) return response;
  throw report(await errorOf(response), options);
}

async function request(method: string, path: string, { body, signal, idempotencyKey }: CallOptions): Promise<Response> {
  const headers = {
    ...callerHeaders(method),
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

/** Another tab may have logged in again to the same account, which gives this browser a new session with a new token. */
async function tokenWasOld(error: ApiError, { anonymous, signal }: CallOptions): Promise<boolean> {
  if (anonymous || error.reason !== "csrf_token") return false;
  const response = await request("GET", "/v1/account", { signal });
  if (!response.ok) return false;
  const session = (await response.json()) as Session;
  if (session.account.id !== caller.accountId || session.csrf_token === caller.csrfToken) return false;
  callAs(session);
  return true;
}
