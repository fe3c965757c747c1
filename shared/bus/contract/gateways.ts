/** Calls to gateways: limits of keys that they own, what they have counted, tokens that they have made. */
import Type, { type Static } from "typebox";
import type { Declared } from "./declared.ts";
import { Count, Empty, Id } from "./fields.ts";

const Key = Type.String({ minLength: 1, maxLength: 160 });
/** A rate limit. */
const Policy = Type.Object({
  /** Calls in any window. */
  limit: Count,
  /** The most calls at once, up to `limit`; further calls are admitted evenly, at `limit` per window. */
  burst: Count,
  windowMs: Count,
});
export type Policy = Readonly<Static<typeof Policy>>;
/** Another gateway owns the key. */
const Moved = Type.Object({ moved_to: Id });

const Taken = Type.Object({
  granted: Count,
  remaining: Count,
  next_ms: Type.Number(),
  /** Tokens to be used soon without asking, and the name under which unused ones are given back. */
  prepaid: Count,
  prepayment: Type.Number(),
});
export type Taken = Static<typeof Taken>;

const Counted = Type.Object({
  spent: Type.Array(Type.Tuple([Type.Number(), Count, Type.Number()])),
  burst: Type.Optional(Type.Object({ left: Type.Number(), agoMs: Type.Number() })),
  pending: Type.Array(Type.Object({ id: Id, peer: Id })),
});
/** What a gateway has counted for a key: tokens spent, what was left of the burst and how long ago, reservations. */
export type Counted = Static<typeof Counted>;

/** What a session token allows. */
const Grant = Type.Object({
  account_id: Id,
  /** The key that it was made with; absent where a browser made it. */
  key_id: Type.Optional(Id),
  /** The browser's session, which the token does not outlive. */
  browser: Type.Optional(Id),
  sandbox_id: Id,
  /** The only session that it may attach to. */
  session_id: Type.Optional(Id),
  read_only: Type.Boolean(),
});
export type Grant = Static<typeof Grant>;

/** Answered by the gateway that owns the key, or says which one does. */
const ownerCalls = {
  take: {
    request: Type.Object({ key: Key, want: Count, policy: Policy, by: Id }),
    reply: Type.Union([Taken, Moved]),
    /** Longer than an owner needs that has to ask the others first. */
    timeoutMs: 1_000,
  },
  /** Tokens that were not used. */
  return: { request: Type.Object({ key: Key, count: Count, prepayment: Type.Optional(Type.Number()) }) },
  reserve: {
    /** `more`: further places, of which all or none are granted. */
    request: Type.Object({ key: Key, id: Id, more: Type.Optional(Type.Array(Id)), peer: Id, limit: Count }),
    reply: Type.Union([Type.Object({ granted: Type.Boolean() }), Moved]),
    timeoutMs: "given",
  },
  settle: { request: Type.Object({ key: Key, id: Id }), reply: Empty, timeoutMs: 2_000 },
  /** What another gateway has counted. */
  adopt: { request: Type.Object({ key: Key, state: Counted }) },
} satisfies Declared;

/** Answered by each gateway for itself. */
const peerCalls = {
  /** Which of these reservations it still works on. */
  held: { request: Type.Object({ ids: Type.Array(Id) }), reply: Type.Object({ ids: Type.Array(Id) }), timeoutMs: 2_000, byWorkers: true },
  /** What it has counted for a key, which it forgets with the answer. */
  takeover: { request: Type.Object({ key: Key }), reply: Counted, timeoutMs: 10_000 },
  /** What it has seen of an account in the last hour. */
  usage: {
    request: Type.Object({ account_id: Type.String() }),
    reply: Type.Object({ minutes: Type.Array(Type.Object({ minute: Count, requests: Count, refused: Count, sandboxes: Count })) }),
    timeoutMs: 1_000,
  },
  /** What a token that it has made allows; it is used up with that. */
  redeem: { request: Type.Object({ hash: Type.String() }), reply: Grant, timeoutMs: 5_000 },
} satisfies Declared;

/** Answered by any gateway. */
const anyCalls = {
  /** Whether a sandbox is the worker's that asks, which has a copy of it. If that is not decided, it is from now on: it is the source's. */
  settleMove: {
    request: Type.Object({ sandbox_id: Id, move_id: Id, from: Id }),
    reply: Type.Object({ is_moved: Type.Boolean() }),
    timeoutMs: 10_000,
    byWorkers: "by name",
  },
} satisfies Declared;

export const gatewayCalls = { ...ownerCalls, ...peerCalls, ...anyCalls };
