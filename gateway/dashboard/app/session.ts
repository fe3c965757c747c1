/** The session of the logged-in account. */
import type { Account } from "../../../shared/schemas/accounts.ts";
import type { Session } from "./api.ts";
import { call, callAs } from "./api.ts";

let current: Session | undefined;

/** @throws {Error} when nobody is logged in; the pages in the shell are only shown after a login. */
export function account(): Account {
  return session().account;
}

export function session(): Session {
  if (!current) throw new Error("nobody is logged in");
  return current;
}

export function isLoggedIn(): boolean {
  return current !== undefined;
}

/** Whether this server has an optional feature. */
export function hasFeature(name: string): boolean {
  return current?.features.includes(name) ?? false;
}

/** Starts the session from the answer of a login or of `GET /v1/account`. */
export function begin(answer: Session): void {
  current = answer;
  callAs(answer);
}

/** Stores the CSRF token of the session that replaced this one. */
export function renew(csrf_token: string): void {
  if (current) begin({ ...current, csrf_token });
}

export function forget(): void {
  current = undefined;
  callAs(undefined);
}

/** Loads the session from the server. @throws {APIError} with status 401 when nobody is logged in. */
export async function loadSession(): Promise<void> {
  begin(await call<Session>("GET", "/v1/account", { anonymous: true }));
}

/** Checks that this page's account is still logged in. @throws {APIError} which has already been reported to the page */
export async function checkSession(): Promise<void> {
  const answer = await call<Session>("GET", "/v1/account");
  if (current?.account.id === answer.account.id) begin(answer);
}

/** Ends the session on the server, then in this page. */
export async function logOut(): Promise<void> {
  await call("POST", "/v1/auth/logout", { body: {} });
  forget();
}
