/**
 * Which call the code that runs now works for, as W3C Trace Context has it (https://www.w3.org/TR/trace-context/). It follows
 * promises, timers and callbacks of Node.js; callbacks of uWebSockets.js and of subscriptions have none of their own.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { randomBytes } from "node:crypto";

/** A span of a trace, as those are told of it who continue the trace. */
export interface SpanIds {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** 16 hexadecimal digits. */
  readonly spanId: string;
  /** Of the bits, see `traceFlags`. */
  readonly flags: number;
  /** What tracing systems say to each other: the header `tracestate`. */
  readonly state?: string;
}

/** `sampled`: who has made the span records it. `random`: the trace id is random. */
export const traceFlags = { sampled: 1, random: 2 } as const;
const knownFlags = traceFlags.sampled | traceFlags.random;

const form = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const isZero = (id: string): boolean => /^0+$/.test(id);

/** Reads a `traceparent`. @returns undefined for one that is invalid, which counts as none; later versions may add to it */
export function parseTraceparent(text: string): SpanIds | undefined {
  const [, version, traceId = "", spanId = "", flags = "", more] = form.exec(text) ?? [];
  if (version === undefined || version === "ff" || isZero(traceId) || isZero(spanId)) return undefined;
  if (version === "00" && more !== undefined) return undefined;
  return { traceId, spanId, flags: Number.parseInt(flags, 16) & knownFlags };
}

export const formatTraceparent = ({ traceId, spanId, flags }: SpanIds): string => `00-${traceId}-${spanId}-${flags.toString(16).padStart(2, "0")}`;

/** What must be passed on at least. More is dropped: it would have to fit into every message. */
const stateCharactersMax = 512;
const stateMembersMax = 32;
const member = /^([a-z0-9][a-z0-9_*/@-]{0,255})=([\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e])$/;

/** Reads a `tracestate`. @returns undefined for one that is empty, invalid or too long; the trace is continued without it */
export function parseTracestate(text: string): string | undefined {
  if (text.length > stateCharactersMax) return undefined;
  const members = text
    .split(",")
    .map((item) => item.replace(/^[ \t]+|[ \t]+$/g, ""))
    .filter(Boolean);
  const keys = members.map((item) => member.exec(item)?.[1]);
  if (members.length === 0 || members.length > stateMembersMax || keys.includes(undefined) || new Set(keys).size < keys.length) return undefined;
  return members.join(",");
}

/** The trace of one call. Ids are made when they are first asked for: most calls that read something never need any. */
export class TraceContext {
  /** The call's own id; a trace may have many calls. */
  readonly requestId: string | undefined;
  readonly #parent: string;
  readonly #state: string;
  #ids: SpanIds | undefined;

  /** @param parent the `traceparent` that came with the call, and `state` its `tracestate`; both may be anything */
  constructor(requestId: string | undefined, parent = "", state = "") {
    this.requestId = requestId;
    this.#parent = parent;
    this.#state = state;
  }

  static of(ids: SpanIds, requestId: string | undefined): TraceContext {
    const context = new TraceContext(requestId);
    context.#ids = ids;
    return context;
  }

  /** The span that the call came from; undefined where a trace begins. */
  get parent(): SpanIds | undefined {
    const ids = this.#parent === "" ? undefined : parseTraceparent(this.#parent);
    const state = ids && parseTracestate(this.#state);
    return ids && { ...ids, ...(state === undefined ? {} : { state }) };
  }

  get ids(): SpanIds {
    this.#ids ??= this.parent ?? { traceId: randomBytes(16).toString("hex"), spanId: randomBytes(8).toString("hex"), flags: traceFlags.random };
    return this.#ids;
  }

  /** Whether anything was logged, sent or recorded under these ids. */
  get isUsed(): boolean {
    return this.#ids !== undefined;
  }
}

const storage = new AsyncLocalStorage<TraceContext | undefined>();

/** The trace of the call that the running code works for, if it works for one. */
export const currentTrace = (): TraceContext | undefined => storage.getStore();

/** Runs code, and all that it causes, for a call. */
export const inTrace = <T>(trace: TraceContext | undefined, work: () => T): T => storage.run(trace, work);

/** Runs code for no call: what a call sets off but does not wait for, and what outlives it. */
export const outsideTrace = <T>(work: () => T): T => storage.run(undefined, work);
