/** The pipeline's rate limit step: spends one of the caller's tokens and reports in headers what is left. */
import type { Policy } from "../../shared/bus/contract/gateways.ts";
import type { Caller } from "../call.ts";
import type { GatewayContext } from "../context.ts";
import type { Exchange } from "../http/exchange.ts";
import { rateLimited, type Verdict } from "../limit/rates.ts";

/**
 * The budget that a call counts against. `requests`: the tokens of the caller. `pages`: a separate allowance for browsers,
 * so that looking at settings is free. `lookups`: a separate allowance for all callers, for what a client looks up before
 * it carries out a command.
 */
export type Allowance = "requests" | "pages" | "lookups";

/** Of the allowances other than `requests`. */
const ownPolicy: Policy = { limit: 600, burst: 600, windowMs: 60_000 };

/** Lets the call through; synchronously unless another gateway must be asked. @throws {SandgateError} `rate_limited`. */
export function spend(context: GatewayContext, exchange: Exchange, caller: Caller, allowance: Allowance): Promise<void> | void {
  const isOwn = allowance === "lookups" || (allowance === "pages" && caller.session !== undefined);
  const policy = isOwn ? ownPolicy : caller.policy;
  const verdict = context.rates.take(isOwn ? `${caller.limitKey}:${allowance}` : caller.limitKey, policy);
  if (verdict instanceof Promise) return verdict.then((later) => apply(context, exchange, caller, policy, later));
  apply(context, exchange, caller, policy, verdict);
}

function apply({ activity, keyUses }: GatewayContext, exchange: Exchange, caller: Caller, policy: Policy, verdict: Verdict): void {
  exchange.rateLimit = { policy: policyHeader(policy), state: `"requests";r=${verdict.remaining};t=${Math.ceil(verdict.nextMs / 1_000)}` };
  if (policy !== ownPolicy) {
    activity.count(caller, verdict.granted);
    keyUses.note(caller);
  }
  if (!verdict.granted) throw rateLimited(`the limit of ${policy.limit} requests a minute is reached`, verdict);
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
