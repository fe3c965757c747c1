/**
 * Calls to the server that served this page. The browser sends the session's cookie by itself: the one of whoever has
 * logged in last, in whatever tab. So every call names the account of this page, and the server refuses it for another.
 */

import { type Call, Connection } from "../../../shared/client/connection.ts";
import { APIConnectionError, APIError, errorOfAnswer } from "../../../shared/client/errors.ts";
import { browserPlatform } from "../../../shared/client/platform-browser.ts";
import type { Transport, WireAnswer } from "../../../shared/client/transport.ts";
import type { CurrentAccount } from "../../../shared/schemas/accounts.ts";
import { connectionLost, connectionWorks } from "./connection.ts";

/** Who is logged in, as a browser is told. */
export type Session = Required<CurrentAccount>;

export { APIConnectionError, APIError };

export interface CallOptions {
  readonly body?: object;
  readonly signal?: AbortSignal | undefined;
  /** The same call under the same key is carried out once. */
  readonly idempotencyKey?: string;
  /** Whether somebody is logged in is the question: a 401 or 403 is an answer like any other, not the end of the session. */
  readonly anonymous?: boolean;
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

const overFetch = browserPlatform.transport(undefined);

/** Tells the page whether the server can be reached. */
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

/** Nothing is sent twice, and a call may take as long as the page is there: people see what becomes of it. */
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
 * @throws {APIError} with the server's words; {APIConnectionError} when there was no answer; an AbortError when `signal` ended the call
 */
export function call<T>(method: Call["method"], path: string, options: CallOptions = {}): Promise<T> {
  return reported(method, path, options, (call) => connection.json<T>(call));
}

/** As `call`, with the successful answer's body still unread. */
export function send(method: Call["method"], path: string, options: CallOptions = {}): Promise<WireAnswer> {
  return reported(method, path, options, (call) => connection.open(call));
}

/**
 * A call that makes something. Asking again for the same thing, because its answer was lost or an error, does not make
 * it twice; asking for something else is a call of its own.
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

/** Turns an answer that is not a success into its error. */
export async function errorOf(response: Response): Promise<APIError> {
  return errorOfAnswer(response.status, response.headers, await response.text().catch(() => ""));
}

/** Tells the page about errors that concern all of it; returns the error. */
export function report(error: APIError, { anonymous = false }: Pick<CallOptions, "anonymous"> = {}): APIError {
  if (error.status === 401 && !anonymous) reactions.unauthorized();
  if (isSuspension(error) && !anonymous) reactions.suspended(error.message);
  if (error.reason === "other_account" && !anonymous) reactions.otherAccount();
  return error;
}

export const isSuspension = (error: unknown): error is APIError => error instanceof APIError && error.reason === "suspended";

/** Another tab may have logged in again to the same account, which gives this browser a new session with a new token. */
async function tokenWasOld(error: unknown, { anonymous, signal }: CallOptions): Promise<boolean> {
  if (anonymous || !(error instanceof APIError) || error.reason !== "csrf_token") return false;
  const session = await connection.get<Session>("/v1/account", { signal }).catch(() => undefined);
  if (!session || session.account.id !== caller.accountId || session.csrf_token === caller.csrfToken) return false;
  callAs(session);
  return true;
}
