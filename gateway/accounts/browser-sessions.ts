/** Sessions of logged-in browsers: a random cookie, stored only as a hash, valid until expiry, logout or password change. */
import { randomBytes, timingSafeEqual } from "node:crypto";
import type { Config } from "../../shared/config.ts";
import type { LoginRecord, SessionRecord } from "../../shared/schemas/records.ts";
import { every } from "../../shared/util/background.ts";
import type { Logger } from "../../shared/util/log.ts";
import { cookieLine, cookieOf, type Secured } from "../http/cookies.ts";
import { hashKey } from "./keys.ts";
import type { Records } from "./records.ts";

const cookieName = "sandgate_session";
/** How often expired sessions are dropped from memory; the NATS server removes them by itself. */
const sweepMs = 600_000;
/** The most browsers in which one account may be logged in; beyond it, the earliest logins end. */
const browsersMax = 100;

export class BrowserSessions {
  readonly #records: Records;
  readonly #lifeMs: number;
  readonly #secured: Secured;

  constructor(records: Records, { sessionMs, ...config }: Config, log: Logger) {
    this.#records = records;
    this.#lifeMs = sessionMs;
    this.#secured = config;
    every(sweepMs, log, "could not drop expired browser sessions", () => this.#sweep()).unref();
  }

  /** The session of a `Cookie` header with its storage id; undefined when it has ended. */
  find(cookieHeader: string): { readonly id: string; readonly session: SessionRecord } | undefined {
    const token = cookieOf(cookieHeader, cookieName);
    if (token === undefined) return undefined;
    const id = hashKey(token);
    const session = this.get(id);
    return session && { id, session };
  }

  /** The session with this id; undefined when it has ended. */
  get(id: string): SessionRecord | undefined {
    const session = this.#records.sessions.get(id);
    if (!session || session.expires_at_ms <= Date.now()) return undefined;
    return this.#records.logins.get(session.login)?.password_version === session.password_version ? session : undefined;
  }

  /** Logs a browser in. @returns the record, and the `Set-Cookie` header to send. */
  async start(loginKey: string, login: LoginRecord): Promise<{ session: SessionRecord; cookie: string }> {
    await this.#endFirst(login.account_id);
    const token = randomBytes(32).toString("base64url");
    const now = Date.now();
    const session: SessionRecord = {
      account_id: login.account_id,
      login: loginKey,
      password_version: login.password_version,
      csrf_token: randomBytes(24).toString("base64url"),
      created_at_ms: now,
      expires_at_ms: now + this.#lifeMs,
    };
    await this.#records.sessions.put(hashKey(token), session);
    return { session, cookie: this.#cookie(token, Math.floor(this.#lifeMs / 1_000)) };
  }

  /** Logs the browser out. @returns the `Set-Cookie` header that clears the cookie. */
  async end(cookieHeader: string): Promise<string> {
    const token = cookieOf(cookieHeader, cookieName);
    if (token !== undefined) await this.#records.sessions.delete(hashKey(token));
    return this.#cookie("", 0);
  }

  async #endFirst(accountId: string): Promise<void> {
    const own = [...this.#records.sessions.entries()].filter(([, { account_id }]) => account_id === accountId);
    if (own.length < browsersMax) return;
    own.sort(([, one], [, other]) => one.created_at_ms - other.created_at_ms);
    for (const [id] of own.slice(0, own.length - browsersMax + 1)) await this.#records.sessions.delete(id);
  }

  #cookie(value: string, maxAgeS: number): string {
    return cookieLine(cookieName, value, maxAgeS, this.#secured);
  }

  #sweep(): void {
    const now = Date.now();
    for (const [key, session] of [...this.#records.sessions.entries()]) if (session.expires_at_ms <= now) this.#records.sessions.note(key, undefined);
  }
}

/** Whether a call carries the session's CSRF token, which no other site can read. */
export function hasCsrfToken(session: SessionRecord, given: string): boolean {
  const [expected, actual] = [Buffer.from(session.csrf_token), Buffer.from(given)];
  return expected.length === actual.length && timingSafeEqual(expected, actual);
}
