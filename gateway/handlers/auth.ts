/** Sign-up, login, logout and password change. */

import { SandgateError } from "../../shared/errors.ts";
import type { AuthSettings, CurrentAccount, LogInBody, Message, NewPassword, PasswordBody, SignUpBody } from "../../shared/schemas/accounts.ts";
import { newAccount, storeSignedUp } from "../accounts/accounts.ts";
import { suspended } from "../accounts/auth.ts";
import { checkPassword, knownDevice, loginKeyOf } from "../accounts/login-attempts.ts";
import { withPassword } from "../accounts/passwords.ts";
import type { Call, OpenCall } from "../call.ts";
import type { GatewayContext } from "../context.ts";
import { sessionAnswer } from "./account.ts";

/** The settings that the login page needs. */
export function authSettings({ config }: GatewayContext): AuthSettings {
  return { sign_up: config.signUp };
}

/**
 * Creates an account unless the e-mail address has one. Answer and duration are the same in both cases, so that strangers
 * cannot find out who is registered. Logging in shows whether the account was created.
 *
 * @throws {SandgateError} `forbidden` when sign-up is closed, `rate_limited`.
 */
export async function signUp(context: GatewayContext, { exchange, body }: OpenCall<unknown, SignUpBody>): Promise<Message> {
  const { config, records, passwords, signUps } = context;
  if (!config.signUp)
    throw new SandgateError("forbidden", "Signing up is closed on this server. Ask its operator for an account.", { reason: "sign_up_closed" });
  const account = newAccount(body.email, body.name);
  refuseAddressAsPassword("password", body.password, account.email);
  signUps.take(exchange.address(config.trustProxy));
  if (await storeSignedUp(records, config, account, await passwords.hash(body.password))) exchange.audited = { account: account.id, target: account.id };
  return { message: "If this e-mail address is new here, its account is made: log in with the password that you chose" };
}

/** @throws {SandgateError} `unauthorized`, the same for a wrong password and an unknown address; `forbidden` when suspended. */
export async function logIn(context: GatewayContext, { exchange, body }: OpenCall<unknown, LogInBody>): Promise<CurrentAccount> {
  const loginKey = loginKeyOf(body.email);
  const login = await checkPassword(context, exchange, loginKey, body.password);
  const account = login && (await context.records.accounts.find(login.account_id));
  if (!login || !account) throw new SandgateError("unauthorized", "Wrong e-mail or password.");
  exchange.audited = { account: account.id };
  if (account.suspended) throw suspended();
  // The browser loses its former cookie, and that session could not be ended later.
  if (context.sessions.find(exchange.header("cookie"))) await context.sessions.end(exchange.header("cookie"));
  const { session, cookie } = await context.sessions.start(loginKey, login);
  const cookies = [cookie, knownDevice(exchange.header("cookie"), login, context.config)].filter((one) => one !== undefined);
  exchange.addHeaders({ "set-cookie": cookies });
  return sessionAnswer(context, account, session);
}

export async function logOut({ sessions }: GatewayContext, { exchange }: Call<unknown, unknown>): Promise<Message> {
  const cookie = await sessions.end(exchange.header("cookie"));
  exchange.addHeaders({ "set-cookie": cookie });
  return { message: "Logged out" };
}

/** Changes the password. All sessions end except the new one in the answer. @throws {SandgateError} `forbidden`. */
export async function changePassword(context: GatewayContext, call: Call<unknown, PasswordBody>): Promise<NewPassword> {
  const { records, sessions, passwords } = context;
  const { exchange, caller, body } = call;
  const loginKey = caller.session?.login;
  if (loginKey === undefined) throw wrongPassword();
  refuseAddressAsPassword("new_password", body.new_password, caller.account.email ?? "");
  const login = await checkPassword(context, exchange, loginKey, body.current_password);
  if (!login) throw wrongPassword();
  const password = await passwords.hash(body.new_password);
  const changed = await records.logins.change(loginKey, (record) => {
    // A concurrent change was faster, so the checked password is no longer the current one.
    if (record.password !== login.password) throw wrongPassword();
    return withPassword(record, password);
  });
  if (!changed) throw wrongPassword();
  await sessions.end(exchange.header("cookie"));
  const { session, cookie } = await sessions.start(loginKey, changed);
  const answer = { message: "Password changed; all other sessions of this account have ended", csrf_token: session.csrf_token };
  const cookies = [cookie, knownDevice("", changed, context.config)].filter((one) => one !== undefined);
  exchange.addHeaders({ "set-cookie": cookies });
  return answer;
}

const wrongPassword = (): SandgateError => new SandgateError("forbidden", "The current password is wrong.", { reason: "wrong_password" });

function refuseAddressAsPassword(field: string, password: string, email: string): void {
  if (email && password.trim().toLowerCase() === email.toLowerCase()) throw new SandgateError("invalid_request", `${field} must not be the e-mail address`);
}
