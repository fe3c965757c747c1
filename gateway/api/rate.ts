/** The pipeline's rate limit step: spends one of the caller's tokens and reports in headers what is left. */
import type { Policy } from "../../shared/bus/contract/gateways.ts";
import type { KeyUses } from "../accounts/keys.ts";
import type { Caller } from "../call.ts";
import type { Exchange } from "../http/exchange.ts";
import { type RateLimiter, rateLimited, type Verdict } from "../limit/rates.ts";
import type { AccountActivity } from "../metrics/activity.ts";

/**
 * The budget that a call counts against. `requests`: the tokens of the caller. `pages`: a separate allowance for browsers,
 * so that looking at settings is free. `lookups`: a separate allowance for all callers, for what a client looks up before
 * it carries out a command.
 */
export type Allowance = "requests" | "pages" | "lookups";

const ownPolicy: Policy = { limit: 600, burst: 600, windowMs: 60_000 };

export class CallLimits {
  readonly #rates: RateLimiter;
  readonly #activity: AccountActivity;
  readonly #keyUses: KeyUses;

  constructor(rates: RateLimiter, activity: AccountActivity, keyUses: KeyUses) {
    this.#rates = rates;
    this.#activity = activity;
    this.#keyUses = keyUses;
  }

  /** Lets the call through; synchronously unless another gateway must be asked. @throws {SandgateError} `rate_limited`. */
  spend(exchange: Exchange, caller: Caller, allowance: Allowance): Promise<void> | void {
    const isOwn = allowance === "lookups" || (allowance === "pages" && caller.session !== undefined);
    const policy = isOwn ? ownPolicy : caller.policy;
    const verdict = this.#rates.take(isOwn ? `${caller.limitKey}:${allowance}` : caller.limitKey, policy);
    if (verdict instanceof Promise) return verdict.then((later) => this.#apply(exchange, caller, policy, later, isOwn));
    this.#apply(exchange, caller, policy, verdict, isOwn);
  }

  #apply(exchange: Exchange, caller: Caller, policy: Policy, verdict: Verdict, isOwn: boolean): void {
    exchange.rateLimit = { policy: policyHeader(policy), state: `"requests";r=${verdict.remaining};t=${Math.ceil(verdict.nextMs / 1_000)}` };
    if (!isOwn) {
      this.#activity.count(caller, verdict.granted);
      this.#keyUses.note(caller);
    }
    if (!verdict.granted) throw rateLimited(`the limit of ${policy.limit} requests a minute is reached`, verdict);
  }
}

const policyHeaders = new WeakMap<Policy, string>();

/** The `RateLimit-Policy` header of the IETF draft: quota, and window in seconds. */
function policyHeader(policy: Policy): string {
  let header = policyHeaders.get(policy);
  if (header === undefined) {
    header = `"requests";q=${policy.limit};w=${policy.windowMs / 1_000}`;
    policyHeaders.set(policy, header);
  }
  return header;
}
