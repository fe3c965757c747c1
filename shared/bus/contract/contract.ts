/**
 * Every call that crosses the bus: what is asked, what is answered, how long that may take, and who answers. Subjects,
 * permissions, checks and the types of both sides come from here.
 */
import type { Static, TSchema } from "typebox";
import { commandCalls } from "./commands.ts";
import type { Declared, TimeSettings } from "./declared.ts";
import { Empty } from "./fields.ts";
import { fileCalls } from "./files.ts";
import { gatewayCalls } from "./gateways.ts";
import { lineCalls } from "./lines.ts";
import { moveCalls } from "./moves.ts";
import { operatorCalls } from "./operators.ts";
import { sandboxCalls } from "./sandboxes.ts";
import { sessionCalls } from "./sessions.ts";

/** Calls by who answers them: a worker, a gateway, or any process. */
export const answered = {
  worker: { ...sandboxCalls, ...commandCalls, ...fileCalls, ...sessionCalls, ...lineCalls, ...moveCalls, ...operatorCalls },
  gateway: gatewayCalls,
  /** Whoever asks wants to know whether anybody is there at all, which the bus answers when nobody is. */
  process: { alive: { request: Empty, reply: Empty, timeoutMs: 1_000, byWorkers: true } },
} as const satisfies Record<string, Declared>;

export const contract = { ...answered.worker, ...answered.gateway, ...answered.process };

type Contract = typeof contract;
export type Answerer = keyof typeof answered;
export type VerbOf<A extends Answerer> = Verb & { [B in A]: keyof (typeof answered)[B] }[A];
export type WorkerVerb = VerbOf<"worker">;
export type Verb = keyof Contract;
/** Verbs that are answered. */
export type AskedVerb = { [V in Verb]: Contract[V] extends { reply: TSchema } ? V : never }[Verb];
/** Verbs whose answer is always waited for as long. */
export type TimedVerb = { [V in AskedVerb]: Contract[V] extends { timeoutMs: number } ? V : never }[AskedVerb];

/** Verbs that workers alone ask, and say who they are. */
export type NamedVerb = { [V in TimedVerb]: Contract[V] extends { byWorkers: "by name" } ? V : never }[TimedVerb];
/** The worker that asks, where it says so. */
export type AskerOf<V extends Verb> = V extends NamedVerb ? string : undefined;

/** What the answerer of a verb is given. */
export type Request<V extends Verb> = Static<Contract[V]["request"]>;
/** What it answers; whatever where nobody waits for that. */
export type Reply<V extends Verb> = Contract[V] extends { reply: infer R extends TSchema } ? Static<R> : unknown;
/** What is asked: fields that may be left out may be undefined as well. */
export type Asked<V extends Verb> = Loose<Request<V>>;
type Loose<T> = { readonly [K in keyof T]: object extends Pick<T, K> ? T[K] | undefined : T[K] };

export const verbsOf = <A extends Answerer>(answerer: A): VerbOf<A>[] => Object.keys(answered[answerer]) as VerbOf<A>[];

export const isNamed = (verb: Verb): verb is NamedVerb => (contract as Declared)[verb]?.byWorkers === "by name";

const answerers = new Map((Object.keys(answered) as Answerer[]).flatMap((answerer) => verbsOf(answerer).map((verb) => [verb as Verb, answerer])));
export const answererOf = (verb: Verb): Answerer => answerers.get(verb) as Answerer;

/** How long the answer to a call to a worker is waited for, in milliseconds. */
export function timeoutOf(verb: WorkerVerb, settings: TimeSettings): number {
  const { timeoutMs } = contract[verb];
  return typeof timeoutMs === "number" ? timeoutMs : timeoutMs(settings);
}
