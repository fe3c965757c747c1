/** Logged-in browsers: a random cookie, of which only the hash is stored, until it expires, is ended, or the password changes. */
import { randomBytes, timingSafeEqual } from "node:crypto";
import type { Config } from "../../shared/config.ts";
import type { LoginRecord, SessionRecord } from "../../shared/schemas/records.ts";
import { every } from "../../shared/util/background.ts";
import type { Logger } from "../../shared/util/log.ts";
import { cookieLine, cookieOf } from "../http/cookies.ts";
import { hashKey } from "./keys.ts";
import type { Records } from "./records.ts";

const cookieName = "sandgate_session";
/** Sessions that are over are looked for once in this time and dropped from memory; the server forgets them by itself. */
const sweepMs = 600_000;
/** Browsers in which one account may be logged in; of more, those that have logged in first are logged out. */
const browsersMax = 100;

export class BrowserSessions {
  readonly #records: Records;
  readonly #lifeMs: number;
  readonly #publicUrl: string;

  constructor(records: Records, { sessionMs, publicUrl }: Config, log: Logger) {
    this.#records = records;
    this.#lifeMs = sessionMs;
    this.#publicUrl = publicUrl;
    every(sweepMs, log, "sessions of browsers that are over could not be dropped", () => this.#sweep()).unref();
  }

  /** The session of a `Cookie` header, unless it is over, and what it is kept under. */
  find(cookieHeader: string): { readonly id: string; readonly session: SessionRecord } | undefined {
    const token = cookieOf(cookieHeader, cookieName);
    if (token === undefined) return undefined;
    const id = hashKey(token);
    const session = this.get(id);
    return session && { id, session };
  }

  /** Undefined when it is over. */
  get(id: string): SessionRecord | undefined {
    const session = this.#records.sessions.get(id);
    if (!session || session.expires_at_ms <= Date.now()) return undefined;
    return this.#records.logins.get(session.login)?.password_version === session.password_version ? session : undefined;
  }

  /** Logs a browser in. @returns the record, and the `Set-Cookie` header that the browser must get. */
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

  /** Logs the browser out. @returns the `Set-Cookie` header that makes it forget. */
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
    return cookieLine(cookieName, value, maxAgeS, this.#publicUrl);
  }

  #sweep(): void {
    const now = Date.now();
    for (const [key, session] of [...this.#records.sessions.entries()]) if (session.expires_at_ms <= now) this.#records.sessions.note(key, undefined);
  }
}

/** Whether a call shows the session's own token, which no other site can read. */
export function hasCsrfToken(session: SessionRecord, given: string): boolean {
  const [expected, actual] = [Buffer.from(session.csrf_token), Buffer.from(given)];
  return expected.length === actual.length && timingSafeEqual(expected, actual);
}
