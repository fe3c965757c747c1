/**
 * Calls to the server that served this page. The browser sends the session cookie of the latest login in any tab. So every
 * call names the account of this page, and the server rejects it if another account is logged in.
 */
import { type Call, Connection } from "../../../shared/client/connection.ts";
import { APIConnectionError, APIError, errorOfAnswer } from "../../../shared/client/errors.ts";
import { browserPlatform } from "../../../shared/client/platform-browser.ts";
import type { Transport, WireAnswer } from "../../../shared/client/transport.ts";
import type { CurrentAccount } from "../../../shared/schemas/accounts.ts";
import { h } from "./dom.ts";

/** The logged-in account, as the server reports it to a browser. */
export type Session = Required<CurrentAccount>;

export { APIConnectionError, APIError };

export interface CallOptions {
  readonly body?: object;
  readonly signal?: AbortSignal | undefined;
  /** Repeated calls with the same key are carried out once. */
  readonly idempotencyKey?: string;
  /** The call asks whether somebody is logged in: a 401 or 403 is a normal answer, not the end of the session. */
  readonly anonymous?: boolean;
}

interface Reactions {
  unauthorized(): void;
  suspended(message: string): void;
  otherAccount(): void;
}

/** The account that this page calls for; empty before the login. */
interface Caller {
  readonly accountId: string;
  readonly csrfToken: string;
}

const nobody: Caller = { accountId: "", csrfToken: "" };
let caller = nobody;
let reactions: Reactions = { unauthorized: () => {}, suspended: () => {}, otherAccount: () => {} };

/** Sets the account for all further calls; undefined for none. */
export function callAs(session: Session | undefined): void {
  caller = session ? { accountId: session.account.id, csrfToken: session.csrf_token } : nobody;
}

/** Sets the reactions to calls that fail because nobody or another account is logged in, or the account is suspended. */
export function reactWith(given: Reactions): void {
  reactions = given;
}

/** The headers that every request of this page needs. */
export function callerHeaders(method: string): Record<string, string> {
  const { accountId, csrfToken } = caller;
  const isRead = method === "GET" || method === "HEAD";
  return { ...(accountId ? { "x-sandgate-account": accountId } : {}), ...(isRead ? {} : { "x-csrf-token": csrfToken }) };
}

/** A URL that the browser itself opens, without our headers: the account of this page goes into the query. */
export function ownAddress(path: string): URL {
  const url = new URL(path, location.origin);
  url.searchParams.set("account", caller.accountId);
  return url;
}

const overFetch = browserPlatform.transport(undefined);

/** Reports to the page whether the server can be reached. */
const transport: Transport = async (request) => {
  try {
    const answer = await overFetch(request);
    connectionWorks();
    return answer;
  } catch (error) {
    if (request.signal.aborted) throw error;
    connectionLost();
    throw unreachable(error);
  }
};

export const unreachable = (cause?: unknown): APIConnectionError => new APIConnectionError("The server cannot be reached.", {}, cause);

/** No retries and no timeout: the user sees what happens and decides. */
const connection = new Connection({
  baseUrl: new URL(location.origin),
  place: location.host,
  credentials: callerHeaders,
  timeoutMs: Number.POSITIVE_INFINITY,
  maxRetries: 0,
  onRateLimited: undefined,
  transport,
  platform: browserPlatform,
});

/**
 * One JSON call.
 *
 * @throws {APIError} with the server's message; {APIConnectionError} without an answer; an AbortError when `signal` ended the call
 */
export function call<T>(method: Call["method"], path: string, options: CallOptions = {}): Promise<T> {
  return reported(method, path, options, (call) => connection.json<T>(call));
}

/** Like `call`, but leaves the body of a successful answer unread. */
export function send(method: Call["method"], path: string, options: CallOptions = {}): Promise<WireAnswer> {
  return reported(method, path, options, (call) => connection.open(call));
}

/**
 * A call that creates something. Repeating it with the same body, after a lost answer or an error, does not create it
 * twice; a different body is a new call.
 */
export function maker<T>(path: string): (body: object) => Promise<T> {
  let last = { text: "", key: "" };
  return (body) => {
    const text = JSON.stringify(body);
    if (text !== last.text) last = { text, key: browserPlatform.randomId() };
    return call<T>("POST", path, { body, idempotencyKey: last.key });
  };
}

async function reported<T>(method: Call["method"], path: string, options: CallOptions, once: (call: Call) => Promise<T>): Promise<T> {
  const { body: json, signal, idempotencyKey } = options;
  const headers = idempotencyKey ? { "idempotency-key": idempotencyKey } : {};
  const call = { method, path, json, headers, repeatable: false, options: { signal } };
  try {
    return await once(call).catch(async (error: unknown) => {
      if (method === "GET" || !(await tokenWasOld(error, options))) throw error;
      return once(call);
    });
  } catch (error) {
    throw error instanceof APIError ? report(error, options) : error;
  }
}

/** The error of an unsuccessful response. */
export async function errorOf(response: Response): Promise<APIError> {
  return errorOfAnswer(response.status, response.headers, await response.text().catch(() => ""));
}

/** Reports errors that concern the whole page; returns the error. */
export function report(error: APIError, { anonymous = false }: Pick<CallOptions, "anonymous"> = {}): APIError {
  if (error.status === 401 && !anonymous) reactions.unauthorized();
  if (isSuspension(error) && !anonymous) reactions.suspended(error.message);
  if (error.reason === "other_account" && !anonymous) reactions.otherAccount();
  return error;
}

export const isSuspension = (error: unknown): error is APIError => error instanceof APIError && error.reason === "suspended";

/** Whether the CSRF token was outdated: another tab may have logged in to the same account again, which starts a new session. */
async function tokenWasOld(error: unknown, { anonymous, signal }: CallOptions): Promise<boolean> {
  if (anonymous || !(error instanceof APIError) || error.reason !== "csrf_token") return false;
  const session = await connection.get<Session>("/v1/account", { signal }).catch(() => undefined);
  if (!session || session.account.id !== caller.accountId || session.csrf_token === caller.csrfToken) return false;
  callAs(session);
  return true;
}

const probeMs = 2_000;

let bar: HTMLElement | undefined;
let probe: ReturnType<typeof setTimeout> | undefined;

/** Shows the bar and probes the server until it answers. */
function connectionLost(): void {
  if (bar) return;
  bar = h("div", { class: "connection-bar", role: "status" }, h("span", { class: "spinner", "aria-hidden": "true" }), "Connection lost. Reconnecting…");
  document.body.append(bar);
  askLater();
}

/** Removes the bar and wakes everything that waits for the connection. */
function connectionWorks(): void {
  if (!bar) return;
  clearTimeout(probe);
  bar.remove();
  bar = undefined;
  document.dispatchEvent(new Event("sandgate:reconnected"));
}

function askLater(): void {
  probe = setTimeout(async () => {
    const answer = await fetch("/healthz", { cache: "no-store" }).catch(() => undefined);
    if (answer) connectionWorks();
    else askLater();
  }, probeMs);
}
