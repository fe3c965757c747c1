/**
 * Single-use tokens that each open one WebSocket, for clients that cannot send a key: browsers, and people with whom a
 * session is shared. A token names the gateway that issued it; only that gateway knows it and can redeem it.
 */
import { hash, randomBytes } from "node:crypto";
import { ask } from "../../shared/bus/calls.ts";
import type { Grant } from "../../shared/bus/contract/gateways.ts";
import { NoResponder } from "../../shared/bus/failures.ts";
import type { Bus } from "../../shared/bus/nats.ts";
import { peers } from "../../shared/bus/subjects.ts";
import { SandgateError } from "../../shared/errors.ts";

const lifeMs = 60_000;
/** The most unused tokens of one gateway; beyond it, requests get 429. */
const waitingMax = 10_000;
const form = /^sgt_(gw_[0-9a-z]{26})_([A-Za-z0-9_-]{43})$/;

const invalid = (): SandgateError => new SandgateError("unauthorized", "Invalid session token. It is good for one connection within 60 seconds.");

export class SessionTokens {
  readonly #bus: Bus;
  readonly #self: string;
  /** Grants by the SHA-256 of their token, in order of expiry. */
  readonly #waiting = new Map<string, { readonly grant: Grant; readonly expiresAtMs: number }>();

  /** @param self the id of this gateway's process. */
  constructor(bus: Bus, self: string) {
    this.#bus = bus;
    this.#self = self;
  }

  /** Issues a token. @throws {SandgateError} `rate_limited` when too many are unused. */
  issue(grant: Grant): { token: string; expiresAtMs: number } {
    this.#dropExpired();
    if (this.#waiting.size >= waitingMax) throw new SandgateError("rate_limited", "too many session tokens wait to be used", { retryAfterS: lifeMs / 1_000 });
    const token = `sgt_${this.#self}_${randomBytes(32).toString("base64url")}`;
    const expiresAtMs = Date.now() + lifeMs;
    this.#waiting.set(hash("sha256", token), { grant, expiresAtMs });
    return { token, expiresAtMs };
  }

  /** Redeems a token, which cannot be used again. @throws {SandgateError} `unauthorized`, `unavailable`. */
  async redeem(token: string): Promise<Grant> {
    const issuer = form.exec(token)?.[1];
    if (!issuer) throw invalid();
    const digest = hash("sha256", token);
    if (issuer === this.#self) return this.answer(digest);
    try {
      return await ask(this.#bus, "redeem", peers.gateway(issuer), { hash: digest });
    } catch (error) {
      // A token is lost with the gateway that issued it.
      throw error instanceof NoResponder ? invalid() : error;
    }
  }

  /** Redeems a token for another gateway. @throws {SandgateError} `unauthorized`. */
  answer(digest: string): Grant {
    const found = this.#waiting.get(digest);
    this.#waiting.delete(digest);
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
