/** Calls as the contract declares them, over the bus. What arrives is checked: a request by who answers, a reply by who asked. */
import type { Check } from "../schemas/validate.ts";
import { type Attributes, inSpan, startServerSpan, startSpan } from "../tracing/spans.ts";
import { currentTrace, inTrace, TraceContext } from "../util/trace-context.ts";
import {
  type Answerer,
  type Asked,
  type AskedVerb,
  type AskerOf,
  answererOf,
  contract,
  isNamed,
  type NamedVerb,
  type Reply,
  type Request,
  type TimedVerb,
  type Verb,
  type VerbOf,
  verbsOf,
} from "./contract/contract.ts";
import { messageChecker } from "./messages.ts";
import type { Bus } from "./nats.ts";
import { callSubject, lastToken, namedCallSubject } from "./subjects.ts";

const replyChecks = new Map<Verb, Check<unknown>>();

/** The check of a reply, made when the verb is first asked. */
function replyCheck<V extends AskedVerb>(verb: V): Check<Reply<V>> {
  const known = replyChecks.get(verb) ?? messageChecker(contract[verb].reply, `the reply to ${verb}`);
  replyChecks.set(verb, known);
  return known as Check<Reply<V>>;
}

/**
 * Asks whoever answers the verb under a name: a worker's id, or what a process is called on the bus.
 *
 * @throws {SandgateError} the answerer's own error, or `unavailable` when there is no answer in time.
 */
export function ask<V extends Exclude<TimedVerb, NamedVerb>>(bus: Bus, verb: V, name: string, request: Asked<V>): Promise<Reply<V>> {
  return askWithin(bus, verb, name, request, contract[verb].timeoutMs);
}

/** As `ask`, with a time of the call's own. */
export function askWithin<V extends Exclude<AskedVerb, NamedVerb>>(bus: Bus, verb: V, name: string, request: Asked<V>, timeoutMs: number): Promise<Reply<V>> {
  return askOn(bus, verb, callSubject(verb, name), request, timeoutMs);
}

/** As `ask`, by a worker that says who it is. */
export function askAs<V extends NamedVerb>(bus: Bus, workerId: string, verb: V, name: string, request: Asked<V>): Promise<Reply<V>> {
  return askOn(bus, verb, namedCallSubject(verb, name, workerId), request, contract[verb].timeoutMs);
}

function askOn<V extends AskedVerb>(bus: Bus, verb: V, subject: string, request: Asked<V>, timeoutMs: number): Promise<Reply<V>> {
  const span = startSpan("client", spanName(verb), () => attributesOf(verb, request));
  return inSpan(span, async () => replyCheck(verb)(await bus.call(subject, request, timeoutMs)));
}

/** Says what nobody answers. Never throws. */
export function tell<V extends Exclude<Verb, AskedVerb>>(bus: Bus, verb: V, name: string, request: Asked<V>): void {
  bus.tell(callSubject(verb, name), request);
}

/** A function for every verb of an answerer. */
export type Answers<A extends Answerer> = { readonly [V in VerbOf<A>]: (request: Request<V>, asker: AskerOf<V>) => Reply<V> | Promise<Reply<V>> };

/** Starts to answer what is asked of an answerer of this name. */
export function answer<A extends Answerer>(bus: Bus, answerer: A, name: string, answers: Answers<A>): void {
  for (const verb of verbsOf(answerer)) {
    const check = messageChecker(contract[verb].request, `the request to ${verb}`);
    const handle = answers[verb] as (request: unknown, asker?: string) => unknown;
    if (isNamed(verb)) {
      bus.serve(namedCallSubject(verb, name, "*"), (body, subject) => handleCall(verb, check(body), (request) => handle(request, lastToken(subject))));
    } else bus.serve(callSubject(verb, name), (body) => handleCall(verb, check(body), handle));
  }
}

/** Handles a call in a trace, which begins here where the message has none. */
function handleCall(verb: Verb, request: object, handle: (request: unknown) => unknown): Promise<unknown> {
  const requestId = "request_id" in request ? String(request.request_id) : undefined;
  const came = currentTrace();
  const trace = came ? TraceContext.of(came.ids, requestId) : new TraceContext(requestId);
  const span = startServerSpan(spanName(verb), { parent: came?.ids, requestId }, () => attributesOf(verb, request));
  return inTrace(trace, () => inSpan(span, async () => handle(request)));
}

const spanName = (verb: Verb): string => `${answererOf(verb)}/${verb}`;

/** The fields of requests that name what a call is about: random ids, which say nothing by themselves. */
const idFields = ["account_id", "sandbox_id", "snapshot_id", "execution_id", "session_id"] as const;

function attributesOf(verb: Verb, request: object): Attributes {
  const given = request as Readonly<Partial<Record<(typeof idFields)[number], string>>>;
  const ids = idFields.map((field) => [idAttribute(field), given[field]]);
  return { "rpc.system.name": "nats", "rpc.service": answererOf(verb), "rpc.method": verb, ...Object.fromEntries(ids) };
}

/** `sandbox_id` becomes `sandgate.sandbox.id`. */
const idAttribute = (field: string): string => `sandgate.${field.replace("_", ".")}`;
