/** Who calls, and what of a call handlers are given. */

import type { Grant } from "../shared/bus/contract/gateways.ts";
import type { AccountRecord, KeyRecord, SessionRecord } from "../shared/schemas/records.ts";
import type { KeyLimits } from "../shared/tiers.ts";
import type { Exchange } from "./http/exchange.ts";
import type { Policy } from "./limit/bucket.ts";

/** An authenticated caller: an account, by one of its keys or by a browser. */
export interface Caller {
  readonly account: AccountRecord;
  /** Absent for a browser. */
  readonly key: KeyRecord | undefined;
  readonly session: SessionRecord | undefined;
  /** What the browser's session is kept under; also where a session token comes from a browser. */
  readonly browser: string | undefined;
  /** Whose limits count: the id of the key, or of the account for all of its browsers together. */
  readonly limitKey: string;
  readonly limits: KeyLimits;
  readonly policy: Policy;
  /** As logs name it: the prefix of the key, or `browser`. */
  readonly label: string;
  /** What the session token allows that it came with; absent for everybody else. */
  readonly grant?: Grant;
}

/** A call of anybody, whoever it is. */
export interface OpenCall<Query, Body> {
  readonly exchange: Exchange;
  readonly query: Query;
  readonly body: Body;
}

/** A call of somebody who is known. */
export interface Call<Query, Body> extends OpenCall<Query, Body> {
  readonly caller: Caller;
  /** The `:id` of the path, empty where it has none. */
  readonly id: string;
  readonly by: By;
}

/** Who asks, as every message to a worker says. */
export interface By {
  readonly request_id: string;
  readonly account_id: string;
}

/** JSON text of a value, with the newline at its end: made once and sent often, or kept. */
export type JsonText<A> = (string | Uint8Array) & { readonly [of]: A };
declare const of: unique symbol;

/** What a handler answers with. */
export type Answer<A> = A | JsonText<A>;

/** What a handler gives back that has written its answer by itself. */
export const answered = Symbol("answered");
export type Answered = typeof answered;
