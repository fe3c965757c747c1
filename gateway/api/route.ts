/** Routes: access, input and handler. The constructors tie the types of a handler to the schemas of its input. */

import Type, { type Static, type TNever, type TObject, type TSchema } from "typebox";
import { SandgateError } from "../../shared/errors.ts";
import { type Check, inputChecker, noInput } from "../../shared/schemas/validate.ts";
import { type Answer, type Answered, answered, type Call, type Caller, type OpenCall } from "../call.ts";
import type { GatewayContext } from "../context.ts";
import type { CallFacts, OpenFacts, OperationDocs } from "../docs/operation.ts";
import { readJson } from "../http/body.ts";
import type { Exchange } from "../http/exchange.ts";

/** A promise only if there is something to wait for. */
export type Answering = Promise<void> | void;
type Method = CallFacts["method"];

/** A route that bypasses the pipeline. */
export interface OpenRoute extends OpenFacts {
  readonly answer: (context: GatewayContext, exchange: Exchange) => Answering;
}

/**
 * The budget that a call counts against. `requests`: the tokens of the caller. `pages`: a separate allowance for browsers,
 * so that looking at settings is free. `lookups`: a separate allowance for all callers, for what a client looks up before
 * it carries out a command.
 */
export type Allowance = "requests" | "pages" | "lookups";

interface Limited extends CallFacts {
  /** The allowance that a call spends. */
  readonly allowance: Allowance;
  /** Whether the route upgrades to a WebSocket, where a token may replace the API key. */
  readonly socket: boolean;
  /** Whether calls are in the audit record: those that change something, unless it is a caller's everyday work with sandboxes. */
  readonly recorded: boolean;
}

/** A route for authenticated callers. `perform` validates the input and calls the handler. */
export interface CallerRoute extends Limited {
  readonly access: "account" | "person" | "operator";
  readonly perform: (context: GatewayContext, exchange: Exchange, caller: Caller) => Answering;
}

/** A route that needs no authentication. */
export interface AnyoneRoute extends Limited {
  readonly access: "anyone";
  readonly perform: (context: GatewayContext, exchange: Exchange) => Answering;
}

export type CallRoute = CallerRoute | AnyoneRoute;
export type Route = OpenRoute | CallRoute;

/** The query and body that a route accepts. */
interface Input<Query, Body> {
  readonly query: { readonly schema: TObject; readonly check: Check<Query> };
  readonly body: { readonly schema: TSchema; readonly check: Check<Body> } | { readonly schema?: undefined; readonly left: Body };
}

/** A handler whose answer differs from its documented schema does not compile. */
type Handler<C, A extends TSchema> = (context: GatewayContext, call: C) => Handled<A> | Promise<Handled<A>>;
type Handled<A extends TSchema> = Answer<Static<A>> | Answered;

const empty = inputChecker(Type.Object({}));

export const nothing: Input<object, object> = { query: empty, body: empty };
export const queryOf = <Q extends TObject>(query: Q): Input<Static<Q>, object> => ({ query: inputChecker(query), body: empty });
export const bodyOf = <B extends TSchema>(body: B): Input<object, Static<B>> => ({ query: empty, body: inputChecker(body) });
/** For a body that the handler reads itself, such as a file. */
export const fileWith = <Q extends TObject>(query: Q): Input<Static<Q>, undefined> => ({ query: inputChecker(query), body: { left: undefined } });

interface Options {
  readonly access?: CallerRoute["access"];
  readonly allowance?: Allowance;
  readonly asksWho?: boolean;
  readonly socket?: boolean;
}

/** Declares a route for authenticated callers. */
export function route<Query, Body, A extends TSchema = TNever>(
  method: Method,
  path: string,
  input: Input<Query, Body>,
  docs: OperationDocs<A>,
  handle: Handler<Call<Query, Body>, A>,
  { access = "account", allowance = "requests", asksWho = false, socket = false }: Options = {},
): CallerRoute {
  return {
    ...{ access, docs, method, path, allowance, asksWho, socket, recorded: isRecorded(method, access), ...schemasOf(input) },
    perform: (context, exchange, caller) =>
      wellFormed(context, exchange, method, input, (call) => {
        const by = { request_id: exchange.requestId, account_id: caller.account.id };
        return send(exchange, docs, handle(context, { ...call, caller, id: exchange.params[0] ?? "", by }));
      }),
  };
}

/** Declares a route that needs no authentication. */
export function forAnyone<Query, Body, A extends TSchema = TNever>(
  method: Method,
  path: string,
  input: Input<Query, Body>,
  docs: OperationDocs<A>,
  handle: Handler<OpenCall<Query, Body>, A>,
): AnyoneRoute {
  return {
    ...{ access: "anyone", docs, method, path, allowance: "requests", asksWho: false, socket: false },
    ...{ recorded: isRecorded(method, "anyone"), ...schemasOf(input) },
    perform: (context, exchange) => wellFormed(context, exchange, method, input, (call) => send(exchange, docs, handle(context, call))),
  };
}

/** What anybody may do with an account and its key is everyday work; everything else is about accounts or the installation. */
const isRecorded = (method: Method, access: CallRoute["access"]): boolean => method !== "GET" && access !== "account";

/** Sends the answer of a handler, once it is there. */
function send(exchange: Exchange, docs: OperationDocs, answer: unknown): Answering {
  if (answer instanceof Promise) return answer.then((known) => send(exchange, docs, known));
  if (answer === answered) return;
  if (typeof answer === "string" || answer instanceof Uint8Array) exchange.sendJsonText(docs.success.status, answer);
  else exchange.sendJson(docs.success.status, answer);
}

function schemasOf({ query, body }: Input<unknown, unknown>): Pick<CallFacts, "query" | "body"> {
  return { query, body: body.schema ? body : "file" };
}

/** Validates query and body, then calls `goOn`. @throws {SandgateError} `invalid_request`, `payload_too_large`. */
function wellFormed<Query, Body>(
  { config }: GatewayContext,
  exchange: Exchange,
  method: Method,
  input: Input<Query, Body>,
  goOn: (call: OpenCall<Query, Body>) => Answering,
): Answering {
  const query = input.query.check(parseQuery(input.query.schema, exchange.query));
  if (!input.body.schema) return goOn({ exchange, query, body: input.body.left });
  const { check } = input.body;
  if (method === "GET") return goOn({ exchange, query, body: check(noInput) });
  return readJson(exchange.body, exchange.header("content-type"), config.bodyBytesMax).then((body) => goOn({ exchange, query, body: check(body) }));
}

/** Accepted on every call in place of the key header. Skipped here: authentication has already read it. */
const keyParameter = "api_key";

/**
 * A value that should be a number but is not stays a string, so that validation can report it.
 *
 * @throws {SandgateError} `invalid_request` for a parameter that is unknown or repeated.
 */
export function parseQuery(schema: TObject, query: string): Readonly<Record<string, unknown>> {
  if (query === "") return noInput;
  const values: Record<string, unknown> = {};
  const seen = new Set<string>();
  for (const [name, text] of new URLSearchParams(query)) {
    if (seen.has(name)) throw new SandgateError("invalid_request", `the query parameter ${name} must come only once`);
    seen.add(name);
    if (name === keyParameter) continue;
    if (!Object.hasOwn(schema.properties, name)) throw new SandgateError("invalid_request", `Unknown query parameter: ${name.slice(0, 100)}`);
    const { type } = schema.properties[name] as { type?: string };
    values[name] = type === "integer" && /^-?\d{1,15}$/.test(text) ? Number(text) : text;
  }
  return values;
}
