/**
 * The life of a call, in this order and nowhere else:
 *
 *   who (API key or browser → account) → may it now (limits) → is it well-formed (schemas) → do it (handler) → answer
 *
 * A call that fails one of the first three never reaches a worker. A call that has nothing to wait for is answered
 * before this returns, without a promise: most of the cost of a cheap call is waiting.
 */
import { SandgateError } from "../../shared/errors.ts";
import type { Logger } from "../../shared/util/log.ts";
import type { Caller } from "../accounts/auth.ts";
import type { GatewayContext } from "../context.ts";
import type { Exchange } from "../http/exchange.ts";
import { parseQuery } from "../http/query.ts";
import type { CallLimits } from "../limit/calls.ts";
import type { Admission } from "./admission.ts";
import { audit } from "./audit.ts";
import type { Call, CallRoute, Route } from "./routes.ts";

export interface Pipeline {
  readonly context: GatewayContext;
  readonly admission: Admission;
  readonly limits: CallLimits;
  readonly log: Logger;
}

/** Answers one exchange by its route; whatever happens becomes an answer. */
export function handle(pipeline: Pipeline, exchange: Exchange, route: Route): void {
  try {
    const answering = route.access === "open" ? route.answer(pipeline.context, exchange) : begin(pipeline, exchange, route);
    if (answering) answering.catch((thrown: unknown) => answerError(pipeline.log, exchange, thrown, route));
  } catch (thrown) {
    answerError(pipeline.log, exchange, thrown, route);
  }
}

function begin(pipeline: Pipeline, exchange: Exchange, route: CallRoute): Promise<void> | void {
  const token = route.socket ? new URLSearchParams(exchange.query).get("token") : null;
  if (token !== null) return beginByToken(pipeline, exchange, route, token);
  const caller = whoCalls(pipeline, exchange, route);
  if (route.method !== "GET") exchange.onDone(() => audit(pipeline.log, exchange, route, caller));
  pipeline.admission.refuseIfFull();
  const waiting = proceed(pipeline, exchange, route, caller);
  if (waiting && !exchange.over) pipeline.admission.hold(exchange, caller);
  return waiting;
}

/** A session token stands for the key, or the browser, that it was made with. */
function beginByToken(pipeline: Pipeline, exchange: Exchange, route: CallRoute, token: string): Promise<void> {
  const { authenticator, failures, config, tokens } = pipeline.context;
  pipeline.admission.refuseIfFull();
  const address = exchange.address(config.trustProxy);
  const caller = tokens.redeem(token).then((grant) => authenticator.granted(grant));
  pipeline.admission.hold(exchange, undefined);
  return caller.then(
    (known) => proceed(pipeline, exchange, route, known),
    (error: unknown) => {
      if (error instanceof SandgateError && error.code === "unauthorized") failures.take(address);
      throw error;
    },
  );
}

function proceed(pipeline: Pipeline, exchange: Exchange, route: CallRoute, caller: Caller | undefined): Promise<void> | void {
  const limited = caller && pipeline.limits.spend(exchange, caller, route.allowance);
  return limited ? limited.then(() => perform(pipeline, exchange, route, caller)) : perform(pipeline, exchange, route, caller);
}

/** @throws {SandgateError} `unauthorized`, `forbidden`, or `rate_limited` for an address that fails too often. */
function whoCalls({ context }: Pipeline, exchange: Exchange, { access, asksWho }: CallRoute): Caller | undefined {
  const { authenticator, failures, config } = context;
  if (access === "anyone") {
    authenticator.refuseForeignPage(exchange);
    return undefined;
  }
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

function perform({ context }: Pipeline, exchange: Exchange, route: CallRoute, caller: Caller | undefined): Promise<void> | void {
  const query = route.query.check(parseQuery(route.query.schema, exchange.query));
  if (route.body === "file") return route.handle(context, callOf(exchange, caller, query, undefined));
  const { check } = route.body;
  if (route.method === "GET") return route.handle(context, callOf(exchange, caller, query, check(nothing)));
  return readJson(exchange, context.config.bodyBytesMax).then((body) => route.handle(context, callOf(exchange, caller, query, check(body))));
}

const nothing = Object.freeze({});

function callOf(exchange: Exchange, caller: Caller | undefined, query: unknown, body: unknown): Call<never, never> {
  return {
    exchange,
    // Routes for anyone have handlers whose call has no caller.
    caller: caller as Caller,
    query: query as never,
    body: body as never,
    id: exchange.params[0] ?? "",
    by: { request_id: exchange.requestId, account_id: caller?.account.id ?? "" },
  };
}

async function readJson(exchange: Exchange, bytesMax: number): Promise<unknown> {
  const bytes = await exchange.body.whole(bytesMax);
  if (bytes.length === 0) return {};
  const type = exchange.header("content-type").split(";")[0]?.trim().toLowerCase();
  if (type && type !== "application/json") throw new SandgateError("invalid_request", "the Content-Type must be application/json");
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch (cause) {
    throw new SandgateError("invalid_request", "the request body is not valid JSON", { cause });
  }
}

function answerError(log: Logger, exchange: Exchange, thrown: unknown, route: Route): void {
  const error = SandgateError.from(thrown);
  if (error.status >= 500 && !exchange.aborted) {
    log[error.code === "internal_error" ? "error" : "warn"](
      { err: thrown, cause: error.cause, request_id: exchange.requestId, path: route.path },
      "a call failed",
    );
  }
  exchange.sendError(error);
}
