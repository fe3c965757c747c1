/**
 * The life cycle of a call. This is the only place that defines the order:
 *
 *   authenticate (API key or browser → account) → limit → validate (schemas) → handle → respond
 *
 * A call that fails one of the first three steps never reaches a worker. A call that waits for nothing is answered
 * synchronously, without a promise: promises would be most of the cost of a cheap call.
 */

import type { Policy } from "../../shared/bus/contract/gateways.ts";
import { SandgateError } from "../../shared/errors.ts";
import type { Caller } from "../call.ts";
import type { GatewayContext } from "../context.ts";
import type { Exchange } from "../http/exchange.ts";
import { rateLimited, type Verdict } from "../limit/rates.ts";
import type { Admission } from "./admission.ts";
import { audit } from "./audit.ts";
import type { Allowance, Answering, AnyoneRoute, CallerRoute, CallRoute, Route } from "./route.ts";

export interface Pipeline {
  readonly context: GatewayContext;
  readonly admission: Admission;
}

/** Answers one exchange by its route. Every failure becomes an error response. */
export function handle(pipeline: Pipeline, exchange: Exchange, route: Route): void {
  try {
    const answering = begin(pipeline, exchange, route);
    if (answering) answering.catch((thrown: unknown) => answerError(pipeline.context, exchange, thrown, route));
  } catch (thrown) {
    answerError(pipeline.context, exchange, thrown, route);
  }
}

function begin(pipeline: Pipeline, exchange: Exchange, route: Route): Answering {
  if (route.access === "open") return route.answer(pipeline.context, exchange);
  if (route.access === "anyone") return beginForAnyone(pipeline, exchange, route);
  const token = route.socket ? new URLSearchParams(exchange.query).get("token") : null;
  if (token !== null) return beginByToken(pipeline, exchange, route, token);
  const caller = whoCalls(pipeline, exchange, route);
  admit(pipeline, exchange, route, caller);
  return held(pipeline, exchange, route, caller, spendAndPerform(pipeline, exchange, route, caller));
}

function beginForAnyone(pipeline: Pipeline, exchange: Exchange, route: AnyoneRoute): Answering {
  pipeline.context.authenticator.refuseForeignPage(exchange);
  admit(pipeline, exchange, route, undefined);
  return held(pipeline, exchange, route, undefined, route.perform(pipeline.context, exchange));
}

/** Authenticates by session token, which stands for the key or the browser that it was made with. */
function beginByToken(pipeline: Pipeline, exchange: Exchange, route: CallerRoute, token: string): Promise<void> {
  const { authenticator, failures, config, tokens } = pipeline.context;
  admit(pipeline, exchange, route, undefined);
  const address = exchange.address(config.trustProxy);
  const caller = tokens.redeem(token).then((grant) => authenticator.granted(grant));
  pipeline.admission.hold(exchange, route, undefined);
  return caller.then(
    (known) => spendAndPerform(pipeline, exchange, route, known),
    (error: unknown) => {
      if (error instanceof SandgateError && error.code === "unauthorized") failures.take(address);
      throw error;
    },
  );
}

/** Admits a call. From here on, a call that changes something is audited when it is over. @throws {SandgateError} `unavailable`. */
function admit({ admission, context }: Pipeline, exchange: Exchange, route: CallRoute, caller: Caller | undefined): void {
  if (route.method !== "GET") {
    // When the call is over, its connection may be gone.
    const address = exchange.address(context.config.trustProxy);
    exchange.onDone(() => audit(context, exchange, { route, caller, address }));
  }
  admission.refuseIfFull();
}

/** Tracks a call that waits for something. */
function held({ admission }: Pipeline, exchange: Exchange, route: CallRoute, caller: Caller | undefined, answering: Answering): Answering {
  if (answering && !exchange.over) admission.hold(exchange, route, caller);
  return answering;
}

function spendAndPerform({ context }: Pipeline, exchange: Exchange, route: CallerRoute, caller: Caller): Answering {
  const limited = spend(context, exchange, caller, route.allowance);
  return limited ? limited.then(() => route.perform(context, exchange, caller)) : route.perform(context, exchange, caller);
}

/** Authenticates the caller. @throws {SandgateError} `unauthorized`, `forbidden`, or `rate_limited` for an address that fails too often. */
function whoCalls({ context }: Pipeline, exchange: Exchange, { access, asksWho }: CallerRoute): Caller {
  const { authenticator, failures, config } = context;
  try {
    const caller = authenticator.authenticate(exchange, asksWho);
    if (access === "person" && !caller.session)
      throw new SandgateError("forbidden", "Log in on the web page for this; an API key is not enough.", { reason: "log_in_needed" });
    if (access === "operator" && !caller.account.operator) throw new SandgateError("forbidden", "Only an operator may do this.", { reason: "operators_only" });
    return caller;
  } catch (error) {
    if (error instanceof SandgateError && error.code === "unauthorized") failures.take(exchange.address(config.trustProxy));
    throw error;
  }
}

function answerError({ log }: GatewayContext, exchange: Exchange, thrown: unknown, route: Route): void {
  const error = SandgateError.from(thrown);
  if (error.status >= 500 && !exchange.aborted) {
    log[error.code === "internal_error" ? "error" : "warn"]({ err: thrown, cause: error.cause, path: route.path }, "a call failed");
  }
  exchange.sendError(error);
}

/** Of the allowances other than `requests`. */
const ownPolicy: Policy = { limit: 600, burst: 600, windowMs: 60_000 };

/** Spends one of the caller's tokens and reports in headers what is left; synchronously unless another gateway must be asked. @throws {SandgateError} `rate_limited`. */
function spend(context: GatewayContext, exchange: Exchange, caller: Caller, allowance: Allowance): Promise<void> | void {
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
