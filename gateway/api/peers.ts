/** The bus calls that a gateway answers for other gateways: limits of the keys it owns, activity it has counted, tokens it has issued. */

import { answer } from "../../shared/bus/calls.ts";
import type { Bus } from "../../shared/bus/nats.ts";
import type { GatewayContext } from "../context.ts";

type Answerers = Pick<GatewayContext, "ownership" | "rates" | "reservations" | "idempotency" | "activity" | "tokens"> & {
  readonly moves: Pick<GatewayContext["moves"], "holds" | "settle">;
};

/** Starts answering. */
export function servePeers(bus: Bus, { ownership, rates, reservations, idempotency, activity, tokens, moves }: Answerers): void {
  answer(bus, "gateway", ownership.self, {
    take: (request) => rates.answerTake(request),
    return: (request) => rates.takeBack(request),
    reserve: (request) => reservations.answerReserve(request),
    settle: (request) => reservations.answerSettle(request),
    held: ({ ids }) => ({ ids: ids.filter((id) => reservations.holds(id) || idempotency.isWorkingOn(id) || moves.holds(id)) }),
    takeover: ({ key }) => ownership.handOver(key),
    adopt: (request) => ownership.adopt(request),
    usage: ({ account_id }) => ({ minutes: [...activity.minutesOf(account_id)] }),
    settleMove: (request, worker) => moves.settle(request, worker),
    redeem: ({ hash }) => tokens.answer(hash),
  });
}
