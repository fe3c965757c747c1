/** What gateways say to each other about the limits of keys. */
import Type, { type Static } from "typebox";
import { HeldReply } from "../../shared/bus/messages.ts";
import { checker } from "../../shared/schemas/validate.ts";

const Key = Type.String({ minLength: 1, maxLength: 160 });
const Id = Type.String({ minLength: 1, maxLength: 64 });
const Count = Type.Integer({ minimum: 0 });
const Policy = Type.Object({ limit: Count, burst: Count, windowMs: Count });
/** `moved_to`: another gateway owns the key. */
const Moved = Type.Object({ moved_to: Id });

const Held = Type.Object({ id: Id, peer: Id });
const Spent = Type.Array(Type.Tuple([Type.Number(), Count, Type.Number()]));

export const checkTake = checker(Type.Object({ key: Key, want: Count, policy: Policy, by: Id }));
const Taken = Type.Object({
  granted: Count,
  remaining: Count,
  next_ms: Type.Number(),
  /** Tokens to be used soon without asking, and the name under which unused ones are given back. */
  prepaid: Count,
  prepayment: Type.Number(),
});
export type Taken = Static<typeof Taken>;
export const checkTaken = checker(Type.Union([Taken, Moved]));

export const checkReturn = checker(Type.Object({ key: Key, count: Count, prepayment: Type.Optional(Type.Number()) }));

export const checkReserve = checker(Type.Object({ key: Key, id: Id, peer: Id, limit: Count }));
const Reserved = Type.Union([Type.Object({ granted: Type.Boolean() }), Moved]);
export type Reserved = Static<typeof Reserved>;
export const checkReserved = checker(Reserved);
export const checkSettle = checker(Type.Object({ key: Key, id: Id }));

export const checkHeld = checker(Type.Object({ ids: Type.Array(Id) }));
export const checkHeldReply = checker(HeldReply);

export const checkTakeover = checker(Type.Object({ key: Key }));
const Burst = Type.Object({ left: Type.Number(), agoMs: Type.Number() });
const State = Type.Object({ spent: Spent, burst: Type.Optional(Burst), pending: Type.Array(Held) });
export type State = Static<typeof State>;
export const checkState = checker(State);
export const checkAdopt = checker(Type.Object({ key: Key, state: State }));
