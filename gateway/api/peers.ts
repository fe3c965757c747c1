/** The bus calls that a gateway answers for other gateways: limits of the keys it owns, activity it has counted, tokens it has issued. */

import { answer } from "../../shared/bus/calls.ts";
import type { Bus } from "../../shared/bus/nats.ts";
import type { Idempotency } from "../limit/idempotency.ts";
import type { Ownership } from "../limit/ownership.ts";
import type { RateLimiter } from "../limit/rates.ts";
import type { Reservations } from "../limit/reservations.ts";
import type { SessionTokens } from "../live/tokens.ts";
import type { AccountActivity } from "../metrics/activity.ts";

interface Answerers {
  readonly ownership: Ownership;
  readonly rates: RateLimiter;
  readonly reservations: Reservations;
  readonly idempotency: Idempotency;
  readonly activity: AccountActivity;
  readonly tokens: SessionTokens;
}

/** Starts answering. */
export function servePeers(bus: Bus, { ownership, rates, reservations, idempotency, activity, tokens }: Answerers): void {
  answer(bus, "gateway", ownership.self, {
    take: (request) => rates.answerTake(request),
    return: (request) => rates.takeBack(request),
    reserve: (request) => reservations.answerReserve(request),
    settle: (request) => reservations.answerSettle(request),
    held: ({ ids }) => ({ ids: ids.filter((id) => reservations.holds(id) || idempotency.isWorkingOn(id)) }),
    takeover: ({ key }) => ownership.handOver(key),
    adopt: (request) => ownership.adopt(request),
    usage: ({ account_id }) => ({ minutes: [...activity.minutesOf(account_id)] }),
    redeem: ({ hash }) => tokens.answer(hash),
  });
}
