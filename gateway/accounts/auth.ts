/** Authenticates callers, by API key or as a logged-in browser, from records in memory. */

import type { Grant, Policy } from "../../shared/bus/contract/gateways.ts";
import type { Config } from "../../shared/config.ts";
import { SandgateError } from "../../shared/errors.ts";
import type { AccountRecord, KeyRecord, SessionRecord } from "../../shared/schemas/records.ts";
import { type KeyLimits, limitsOf, type TierNumbers, tierNumbers } from "../../shared/tiers.ts";
import { hostAndPort } from "../../shared/util/host.ts";
import type { Caller } from "../call.ts";
import type { Exchange } from "../http/exchange.ts";
import { type BrowserSessions, hasCsrfToken } from "./browser-sessions.ts";
import { hashKey } from "./keys.ts";
import type { Records } from "./records.ts";

const minuteMs = 60_000;
/** The error for a browser that is no longer logged in. */
export const loggedOut = (): SandgateError => new SandgateError("unauthorized", "This browser is not logged in any more.");
export const suspended = (): SandgateError => new SandgateError("forbidden", "This account is suspended.", { reason: "suspended" });
export const foreignPage = (): SandgateError => new SandgateError("forbidden", "This call must come from Sandgate's own pages.", { reason: "foreign_page" });
const csrfToken = (): SandgateError => new SandgateError("forbidden", "The x-csrf-token header is missing or wrong.", { reason: "csrf_token" });
const hashesMax = 10_000;

/** The rate limit policy for these limits. */
export function policyOf({ requestsPerMinute, burst }: KeyLimits): Policy {
  return { limit: requestsPerMinute, burst, windowMs: minuteMs };
}

export class Authenticator {
  readonly #records: Records;
  readonly #sessions: BrowserSessions;
  readonly #numbers: TierNumbers;
  readonly #publicOrigin: string;
  readonly #hashes = new Map<string, string>();
  /** Cached callers by key or session record. Valid as long as the account's record is unchanged too. */
  readonly #callers = new WeakMap<KeyRecord | SessionRecord, Caller>();

  constructor(records: Records, sessions: BrowserSessions, config: Config) {
    this.#records = records;
    this.#sessions = sessions;
    this.#numbers = tierNumbers(config);
    this.#publicOrigin = config.publicUrl && new URL(config.publicUrl).origin;
  }

  /** The limits of a key, or of the browsers of an account. */
  limits(account: AccountRecord, key?: KeyRecord): KeyLimits {
    return limitsOf(this.#numbers, account, key);
  }

  /**
   * @param asksWho whether the call asks who is logged in, and so need not name its account
   * @throws {SandgateError} `unauthorized` with one of three messages; `forbidden` for a suspended account, a forged call,
   * or a call from a page of another account.
   */
  authenticate(exchange: Exchange, asksWho: boolean): Caller {
    const apiKey = exchange.header("x-api-key") || parameterOf(exchange, "api_key");
    const caller = apiKey ? this.#byKey(apiKey) : this.#bySession(exchange, asksWho);
    if (caller.account.suspended) throw suspended();
    return caller;
  }

  /** The caller that created a session token. @throws {SandgateError} `unauthorized`, `forbidden`. */
  granted(grant: Grant): Caller {
    const account = this.#records.accounts.get(grant.account_id);
    const key = grant.key_id === undefined ? undefined : [...this.#records.keys.values()].find(({ id }) => id === grant.key_id);
    if (!account || (grant.key_id !== undefined && !key)) throw new SandgateError("unauthorized", "Whoever made this session token is gone.");
    if (key?.revoked_at_ms !== undefined) throw new SandgateError("unauthorized", "This API key has been revoked.");
    if (this.hasLoggedOut(grant)) throw loggedOut();
    if (account.suspended) throw suspended();
    const limits = this.limits(account, key);
    return {
      ...{ account, key, session: undefined, browser: grant.browser, grant, limits },
      limitKey: key?.id ?? account.id,
      policy: policyOf(limits),
      label: key?.prefix ?? "browser",
    };
  }

  /** Whether a browser's session has ended: by logout, password change or expiry. */
  hasLoggedOut({ browser }: { readonly browser?: string | undefined }): boolean {
    return browser !== undefined && !this.#sessions.get(browser);
  }

  /**
   * Refuses a call that a page of another site makes with the browser's cookie.
   *
   * @throws {SandgateError} `forbidden`.
   */
  refuseForeignPage(exchange: Exchange): void {
    const origin = exchange.header("origin");
    const site = exchange.header("sec-fetch-site");
    const isOwn = origin ? origin === this.#publicOrigin || isAt(origin, exchange.header("host")) : site === "" || site === "same-origin" || site === "none";
    if (!isOwn) throw foreignPage();
  }

  #byKey(apiKey: string): Caller {
    // Looked up by hash, so that timing reveals nothing about any key.
    const key = this.#records.keys.get(this.#hashOf(apiKey));
    const account = key && this.#records.accounts.get(key.account_id);
    if (!key || !account) throw new SandgateError("unauthorized", "Invalid API key. Check that it is correct and active.");
    if (key.revoked_at_ms !== undefined) throw new SandgateError("unauthorized", "This API key has been revoked.");
    return this.#callerOf(account, key, { key });
  }

  /** Caches hashes: hashing takes longer than all other steps of a cheap call together, and most calls use the same few keys. */
  #hashOf(apiKey: string): string {
    let hashed = this.#hashes.get(apiKey);
    if (hashed === undefined) {
      hashed = hashKey(apiKey);
      if (this.#hashes.size >= hashesMax) this.#hashes.clear();
      // Only for existing keys; invalid ones would evict them.
      if (this.#records.keys.get(hashed)) this.#hashes.set(apiKey, hashed);
    }
    return hashed;
  }

  #bySession(exchange: Exchange, asksWho: boolean): Caller {
    const cookie = exchange.header("cookie");
    const { id, session } = (cookie && this.#sessions.find(cookie)) || {};
    const account = session && this.#records.accounts.get(session.account_id);
    if (!session || !account) throw new SandgateError("unauthorized", "Missing API key. Include it in the x-api-key header.");
    const isRead = exchange.method === "GET" || exchange.method === "HEAD";
    if (!isRead) this.refuseForeignPage(exchange);
    refuseOtherAccount(exchange, account.id, asksWho);
    if (!isRead && !hasCsrfToken(session, exchange.header("x-csrf-token"))) throw csrfToken();
    return this.#callerOf(account, session, { session, browser: id });
  }

  #callerOf(account: AccountRecord, from: KeyRecord | SessionRecord, by: { key?: KeyRecord; session?: SessionRecord; browser?: string | undefined }): Caller {
    const known = this.#callers.get(from);
    if (known?.account === account) return known;
    const { key, session, browser } = by;
    const limits = this.limits(account, key);
    const caller = { account, key, session, browser, limitKey: key?.id ?? account.id, limits, policy: policyOf(limits), label: key?.prefix ?? "browser" };
    this.#callers.set(from, caller);
    return caller;
  }
}

/** A query parameter that every call accepts; empty if absent. */
function parameterOf({ query }: Exchange, name: string): string {
  return query.includes(`${name}=`) ? (new URLSearchParams(query).get(name) ?? "") : "";
}

/**
 * A browser shares one cookie between all tabs and sends that of the latest login. So each page names the account it calls
 * for: in a header, or in the query of URLs that the browser itself opens.
 *
 * @throws {SandgateError} `forbidden` when the named account is not the logged-in one, or is missing.
 */
function refuseOtherAccount(exchange: Exchange, accountId: string, asksWho: boolean): void {
  const named = exchange.header("x-sandgate-account") || parameterOf(exchange, "account");
  if (named === accountId || (named === "" && asksWho)) return;
  const message = named
    ? "This browser is logged in to another account than this page belongs to. Nothing was done; load the page again."
    : "A call with a browser's cookie must name its account in the x-sandgate-account header. Nothing was done; load the page again.";
  throw new SandgateError("forbidden", message, { reason: "other_account" });
}

const defaultPorts: Readonly<Record<string, string>> = { "http:": "80", "https:": "443" };

/** Whether a page's origin is the host that its call went to. The host is one of ours: others were refused before. */
function isAt(origin: string, host: string): boolean {
  if (!URL.canParse(origin)) return false; // Such as "null", which sandboxed frames send.
  const { protocol, hostname, port } = new URL(origin);
  const called = hostAndPort(host);
  const standard = defaultPorts[protocol];
  return standard !== undefined && called?.name === hostname && String(called.port ?? standard) === (port || standard);
}
