/** The caller of an API call, and what handlers receive of a call. */

import type { Grant, Policy } from "../shared/bus/contract/gateways.ts";
import type { AccountRecord, KeyRecord, SessionRecord } from "../shared/schemas/records.ts";
import type { KeyLimits } from "../shared/tiers.ts";
import type { Exchange } from "./http/exchange.ts";

/** An authenticated caller: an account, through one of its API keys or a browser. */
export interface Caller {
  readonly account: AccountRecord;
  /** Undefined for a browser. */
  readonly key: KeyRecord | undefined;
  readonly session: SessionRecord | undefined;
  /** The storage key of the browser's login session; also set for a session token that was made in a browser. */
  readonly browser: string | undefined;
  /** What limits are counted under: the id of the key, or of the account for all of its browsers together. */
  readonly limitKey: string;
  readonly limits: KeyLimits;
  readonly policy: Policy;
  /** The caller in logs: the prefix of the key, or `browser`. */
  readonly label: string;
  /** What the caller's session token allows; absent for callers without one. */
  readonly grant?: Grant;
}

/** A call that needs no authentication. */
export interface OpenCall<Query, Body> {
  readonly exchange: Exchange;
  readonly query: Query;
  readonly body: Body;
}

/** A call by an authenticated caller. */
export interface Call<Query, Body> extends OpenCall<Query, Body> {
  readonly caller: Caller;
  /** The `:id` of the path; empty if the path has none. */
  readonly id: string;
  readonly by: By;
}

/** Request and account, as sent with every message to a worker. */
export interface By {
  readonly request_id: string;
  readonly account_id: string;
}

/** A value serialized as JSON with a final newline, for responses that are cached or stored. */
export type JsonText<A> = (string | Uint8Array) & { readonly [of]: A };
declare const of: unique symbol;

/** What a handler returns. */
export type Answer<A> = A | JsonText<A>;

/** Returned by a handler that has written the response itself. */
export const answered = Symbol("answered");
export type Answered = typeof answered;
