/** Who is logged in. */
import type { Account } from "../../../shared/schemas/accounts.ts";
import type { Session } from "./api.ts";
import { call, callAs } from "./api.ts";

let current: Session | undefined;

/** @throws {Error} when nobody is logged in; pages of the shell are only shown when somebody is. */
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

/** Whether this server has an optional part. */
export function hasFeature(name: string): boolean {
  return current?.features.includes(name) ?? false;
}

/** Takes over what a successful log-in, sign-up or `GET /v1/account` answered. */
export function begin(answer: Session): void {
  current = answer;
  callAs(answer);
}

/** The session was replaced by one with another token. */
export function renew(csrf_token: string): void {
  if (current) begin({ ...current, csrf_token });
}

export function forget(): void {
  current = undefined;
  callAs(undefined);
}

/** Asks the server who is logged in. @throws {APIError} with status 401 when nobody is. */
export async function loadSession(): Promise<void> {
  begin(await call<Session>("GET", "/v1/account", { anonymous: true }));
}

/** Asks whether this page's account is still the one that is logged in. @throws {APIError} which the page has been told of */
export async function checkSession(): Promise<void> {
  const answer = await call<Session>("GET", "/v1/account");
  if (current?.account.id === answer.account.id) begin(answer);
}

/** Ends the session on the server, then here. */
export async function logOut(): Promise<void> {
  await call("POST", "/v1/auth/logout", { body: {} });
  forget();
}
