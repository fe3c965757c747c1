/** Limits password guessing, per account and per address, across all gateways. */
import { createHmac, hash, randomBytes, timingSafeEqual } from "node:crypto";
import type { Config } from "../../shared/config.ts";
import type { LoginRecord } from "../../shared/schemas/records.ts";
import { cookieLine, cookieOf, type Secured } from "../http/cookies.ts";
import type { Exchange } from "../http/exchange.ts";
import { type AddressLimit, networkOf } from "../limit/addresses.ts";
import { type RateLimiter, rateLimited } from "../limit/rates.ts";
import type { Passwords } from "./passwords.ts";
import type { Records } from "./records.ts";

const windowMs = 300_000;
/** All addresses together get this many times the tries of one, so that guessing from many addresses is limited too. */
const strangersFactor = 10;

/** The key of the login record of an e-mail address, case-insensitive. */
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

/**
 * Returns the login record if the password is right; undefined if it is wrong or there is no record, in the same time. A
 * wrong password spends three tries: of the account from this address, of the account from all addresses, and of the
 * address for any account. The right password gives back the account's tries. A browser that has logged in before has
 * separate tries, so that nobody can lock it out.
 *
 * @throws {SandgateError} `rate_limited` when no tries are left, `unavailable` when too many logins are in progress.
 */
export async function checkPassword(parts: Parts, exchange: Exchange, loginKey: string, password: string): Promise<LoginRecord | undefined> {
  const { rates, records, passwords, failures, config } = parts;
  const address = exchange.address(config.trustProxy);
  const cookies = exchange.header("cookie");
  failures.refuseExhausted(address);
  // Always read from the server: the faster answer from memory would reveal which accounts exist.
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
  if (login) exchange.audited = { owner: login.account_id };
  return undefined;
}

interface Tries {
  readonly key: string;
  readonly limit: number;
}

/** The keys and limits that a try counts against. */
function triesOf({ loginFailuresPerAccount: limit }: Config, loginKey: string, address: string, device: string | undefined): Tries[] {
  if (device !== undefined) return [{ key: `login:${loginKey}:device:${device}`, limit }];
  return [
    { key: `login:${loginKey}:${networkOf(address)}`, limit },
    { key: `login:${loginKey}`, limit: limit * strangersFactor },
  ];
}

/** Spends one try of each. @throws {SandgateError} `rate_limited`, with none spent. */
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

const cookieName = "sandgate_device";
const lifeS = 31_536_000;

/*
 * Device cookies identify browsers that have logged in to an account before. They may still try passwords when unknown clients
 * are locked out. The cookie does not log in. https://owasp.org/www-community/Slow_Down_Online_Guessing_Attacks_with_Device_Cookies
 */

/** The device id, if the `Cookie` header proves that the device has logged in with the account's current password. */
export function deviceOf(cookieHeader: string, login: LoginRecord | undefined): string | undefined {
  const [device = "", proof = ""] = cookieOf(cookieHeader, cookieName)?.split(".", 2) ?? [];
  if (!login || !device || !proof) return undefined;
  const [expected, given] = [Buffer.from(proofOf(device, login)), Buffer.from(proof)];
  return expected.length === given.length && timingSafeEqual(expected, given) ? device : undefined;
}

/** The `Set-Cookie` header for a browser that has just logged in; undefined if the device is already known. */
export function knownDevice(cookieHeader: string, login: LoginRecord, secured: Secured): string | undefined {
  if (deviceOf(cookieHeader, login) !== undefined) return undefined;
  const device = randomBytes(16).toString("base64url");
  return cookieLine(cookieName, `${device}.${proofOf(device, login)}`, lifeS, secured);
}

/** Proves a device, keyed with the stored password hash, which only gateways know and which changes with the password. */
function proofOf(device: string, { account_id, password }: LoginRecord): string {
  return createHmac("sha256", password).update(`device ${account_id} ${device}`).digest("base64url");
}
