/**
 * Tokens that open one WebSocket each, for those who cannot send a key: browsers, and people with whom a session is
 * shared. A token names the gateway that made it, which alone knows it and lets it be used once.
 */
import { hash, randomBytes } from "node:crypto";
import Type, { type Static } from "typebox";
import { type Bus, NoResponder } from "../../shared/bus/nats.ts";
import { peers, subjects } from "../../shared/bus/subjects.ts";
import { SandgateError } from "../../shared/errors.ts";
import { checker } from "../../shared/schemas/validate.ts";

const lifeMs = 60_000;
/** Tokens of one gateway that wait to be used; more get 429. */
const waitingMax = 10_000;
const askMs = 5_000;
const form = /^sgt_(gw_[0-9a-z]{26})_([A-Za-z0-9_-]{43})$/;

const Id = Type.String({ minLength: 1, maxLength: 64 });

/** What a token allows. */
const Grant = Type.Object({
  account_id: Id,
  /** The key that it was made with; absent where a browser made it. */
  key_id: Type.Optional(Id),
  /** The browser's session, which the token does not outlive. */
  browser: Type.Optional(Id),
  sandbox_id: Id,
  /** The only session that it may attach to. */
  session_id: Type.Optional(Id),
  read_only: Type.Boolean(),
});
export type Grant = Static<typeof Grant>;

const checkGrant = checker(Grant);
const checkQuestion = checker(Type.Object({ hash: Type.String() }));

const invalid = (): SandgateError => new SandgateError("unauthorized", "Invalid session token. It is good for one connection within 60 seconds.");

export class SessionTokens {
  readonly #bus: Bus;
  readonly #self: string;
  /** By the SHA-256 of the token; in the order in which they expire. */
  readonly #waiting = new Map<string, { readonly grant: Grant; readonly expiresAtMs: number }>();

  /** @param self the id of this gateway's process. */
  constructor(bus: Bus, self: string) {
    this.#bus = bus;
    this.#self = self;
  }

  /** @throws {SandgateError} `rate_limited`. */
  issue(grant: Grant): { token: string; expiresAtMs: number } {
    this.#dropExpired();
    if (this.#waiting.size >= waitingMax) throw new SandgateError("rate_limited", "too many session tokens wait to be used", { retryAfterS: lifeMs / 1_000 });
    const token = `sgt_${this.#self}_${randomBytes(32).toString("base64url")}`;
    const expiresAtMs = Date.now() + lifeMs;
    this.#waiting.set(hash("sha256", token), { grant, expiresAtMs });
    return { token, expiresAtMs };
  }

  /** Uses a token up. @throws {SandgateError} `unauthorized`, `unavailable`. */
  async redeem(token: string): Promise<Grant> {
    const issuer = form.exec(token)?.[1];
    if (!issuer) throw invalid();
    const question = { hash: hash("sha256", token) };
    if (issuer === this.#self) return this.answer(question);
    try {
      return await this.#bus.call(subjects.gateway(peers.gateway(issuer), "redeem"), question, checkGrant, askMs);
    } catch (error) {
      // With the gateway that made it, the token is gone.
      throw error instanceof NoResponder ? invalid() : error;
    }
  }

  /** For other gateways. */
  answer(body: unknown): Grant {
    const { hash } = checkQuestion(body);
    const found = this.#waiting.get(hash);
    this.#waiting.delete(hash);
    if (!found || found.expiresAtMs <= Date.now()) throw invalid();
    return found.grant;
  }

  #dropExpired(): void {
    const now = Date.now();
    for (const [hash, { expiresAtMs }] of this.#waiting) {
      if (expiresAtMs > now) return;
      this.#waiting.delete(hash);
    }
  }
}
