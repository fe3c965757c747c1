/** Guessing passwords: how often it may be tried, for one account over all gateways and from one address. */
import { hash } from "node:crypto";
import type { LoginRecord } from "../../shared/schemas/records.ts";
import type { GatewayContext } from "../context.ts";
import type { Exchange } from "../http/exchange.ts";
import { rateLimited } from "../limit/rates.ts";

const windowMs = 300_000;

/** The key of the login record of an e-mail address, in whatever case it was typed. */
export function loginKeyOf(email: string): string {
  return hash("sha256", email.trim().toLowerCase(), "hex");
}

/**
 * The login record that the password belongs to; undefined when it is wrong or there is none, which takes the same time.
 * A wrong password spends one of the account's tries and one of the address; the right one gives the first back.
 *
 * @throws {SandgateError} `rate_limited` when there are no more tries, `unavailable` when too many others log in.
 */
export async function checkPassword(context: GatewayContext, exchange: Exchange, loginKey: string, password: string): Promise<LoginRecord | undefined> {
  const { rates, records, passwords, failures, config } = context;
  const address = exchange.address(config.trustProxy);
  failures.refuseExhausted(address);
  const limitKey = `login:${loginKey}`;
  const limit = config.loginFailuresPerAccount;
  const verdict = await rates.take(limitKey, { limit, burst: limit, windowMs });
  if (!verdict.granted) throw rateLimited("too many wrong passwords for this account", verdict);
  let isWrong = false;
  try {
    // Always asked of the server: a look into memory first would tell by its speed which accounts there are.
    const login = await records.logins.read(loginKey);
    if (await passwords.verify(password, login?.password)) return login;
    isWrong = true;
  } finally {
    if (!isWrong) await rates.giveBack(limitKey);
  }
  failures.take(address);
  return undefined;
}
