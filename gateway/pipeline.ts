/**
 * The life of a call, in this order and nowhere else:
 *
 *   who (API key → account) → may it now (limit) → is it well-formed (schemas) → do it (handler) → answer
 *
 * A call that fails one of the first three never reaches NATS.
 */
import { SandgateError } from "../shared/errors.ts";
import type { Logger } from "../shared/log.ts";
import type { Admission } from "./admission.ts";
import type { Authenticator, Caller } from "./auth.ts";
import type { GatewayContext } from "./context.ts";
import type { Exchange } from "./http/exchange.ts";
import { parseQuery } from "./http/query.ts";
import type { Call, Route } from "./routes.ts";

export interface Pipeline {
  readonly context: GatewayContext;
  readonly authenticator: Authenticator;
  readonly admission: Admission;
  readonly log: Logger;
}

/** Answers one exchange by its route; whatever happens becomes an answer. */
export async function handle(pipeline: Pipeline, exchange: Exchange, route: Route): Promise<void> {
  try {
    if (route.access === "open") return await route.answer(pipeline.context, exchange);
    const caller = pipeline.authenticator.authenticate(exchange.header("x-api-key"), exchange.query);
    exchange.onDone(pipeline.admission.enter());
    const query = route.query.check(parseQuery(route.query.schema, exchange.query));
    const body = route.body === "file" ? undefined : route.body.check(await readJson(exchange, pipeline.context.config.bodyBytesMax));
    await route.handle(pipeline.context, callOf(exchange, caller, query, body));
  } catch (thrown) {
    answerError(pipeline.log, exchange, thrown, route);
  }
}

function callOf(exchange: Exchange, caller: Caller, query: unknown, body: unknown): Call<never, never> {
  return {
    exchange,
    caller,
    query: query as never,
    body: body as never,
    id: exchange.params[0] ?? "",
    by: { request_id: exchange.requestId, account_id: caller.account.id },
  };
}

async function readJson(exchange: Exchange, bytesMax: number): Promise<unknown> {
  if (exchange.method === "GET" || exchange.method === "HEAD") return {};
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
