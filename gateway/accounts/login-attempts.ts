/** Guessing passwords: how often it may be tried, for one account and from one address, over all gateways. */
import { hash } from "node:crypto";
import type { Config } from "../../shared/config.ts";
import type { LoginRecord } from "../../shared/schemas/records.ts";
import type { Exchange } from "../http/exchange.ts";
import { type AddressLimit, networkOf } from "../limit/addresses.ts";
import { type RateLimiter, rateLimited } from "../limit/rates.ts";
import { deviceOf } from "./devices.ts";
import type { Passwords } from "./passwords.ts";
import type { Records } from "./records.ts";

const windowMs = 300_000;
/** All addresses together may try an account so many times as often as one: more of them could guess without end. */
const strangersFactor = 10;

/** The key of the login record of an e-mail address, in whatever case it was typed. */
export function loginKeyOf(email: string): string {
  return hash("sha256", email.trim().toLowerCase(), "hex");
}

interface Parts {
  readonly config: Config;
  readonly records: Records;
  readonly passwords: Passwords;
  readonly rates: RateLimiter;
  /** Failed authentications, by address. */
  readonly failures: AddressLimit;
}

export class LoginAttempts {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /**
   * The login record that the password belongs to; undefined when it is wrong or there is none, which takes the same time.
   * A wrong password spends one try of the account from this address, one of all addresses together, and one of the address
   * for whatever account; the right one gives the account's back. A browser that has logged in before has tries of its own,
   * so that nobody can lock it out.
   *
   * @throws {SandgateError} `rate_limited` when there are no more tries, `unavailable` when too many others log in.
   */
  async checkPassword(exchange: Exchange, loginKey: string, password: string): Promise<LoginRecord | undefined> {
    const { rates, records, passwords, failures, config } = this.#parts;
    const address = exchange.address(config.trustProxy);
    const cookies = exchange.header("cookie");
    failures.refuseExhausted(address);
    // Always asked of the server: a look into memory first would tell by its speed which accounts there are.
    const login = await records.logins.read(loginKey);
    const tries = await takeTries(rates, triesOf(config, loginKey, address, deviceOf(cookies, login)));
    let isWrong = false;
    try {
      if (await passwords.verify(password, login?.password)) return login;
      isWrong = true;
    } finally {
      if (!isWrong) await giveBack(rates, tries);
    }
    failures.take(address);
    return undefined;
  }
}

interface Tries {
  readonly key: string;
  readonly limit: number;
}

/** What a try is counted under. */
function triesOf({ loginFailuresPerAccount: limit }: Config, loginKey: string, address: string, device: string | undefined): Tries[] {
  if (device !== undefined) return [{ key: `login:${loginKey}:device:${device}`, limit }];
  return [
    { key: `login:${loginKey}:${networkOf(address)}`, limit },
    { key: `login:${loginKey}`, limit: limit * strangersFactor },
  ];
}

/** Spends one of each. @throws {SandgateError} `rate_limited`, with none spent. */
async function takeTries(rates: RateLimiter, wanted: readonly Tries[]): Promise<Tries[]> {
  const taken: Tries[] = [];
  for (const one of wanted) {
    const verdict = await rates.take(one.key, { limit: one.limit, burst: one.limit, windowMs });
    if (!verdict.granted) {
      await giveBack(rates, taken);
      throw rateLimited("too many wrong passwords for this account", verdict);
    }
    taken.push(one);
  }
  return taken;
}

async function giveBack(rates: RateLimiter, taken: readonly Tries[]): Promise<void> {
  for (const { key } of taken) await rates.giveBack(key);
}
