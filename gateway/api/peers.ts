/** The calls that one gateway answers for the others: limits of keys that it owns, what it has counted, tokens that it has made. */

import type { Bus } from "../../shared/bus/nats.ts";
import { type GatewayVerb, lastToken, subjects } from "../../shared/bus/subjects.ts";
import { SandgateError } from "../../shared/errors.ts";
import type { Idempotency } from "../limit/idempotency.ts";
import { checkHeld } from "../limit/messages.ts";
import type { Ownership } from "../limit/ownership.ts";
import type { RateLimiter } from "../limit/rates.ts";
import type { Reservations } from "../limit/reservations.ts";
import type { SessionTokens } from "../live/tokens.ts";
import type { AccountActivity } from "../metrics/activity.ts";
import { answerActivity } from "../metrics/usage.ts";

interface Answerers {
  readonly ownership: Ownership;
  readonly rates: RateLimiter;
  readonly reservations: Reservations;
  readonly idempotency: Idempotency;
  readonly activity: AccountActivity;
  readonly tokens: SessionTokens;
}

/** Starts to answer. */
export function servePeers(bus: Bus, { ownership, rates, reservations, idempotency, activity, tokens }: Answerers): void {
  const answers: Readonly<Record<GatewayVerb, (body: unknown) => unknown>> = {
    take: (body) => rates.answerTake(body),
    return: (body) => rates.takeBack(body),
    reserve: (body) => reservations.answerReserve(body),
    settle: (body) => reservations.answerSettle(body),
    held: (body) => ({ ids: checkHeld(body).ids.filter((id) => reservations.holds(id) || idempotency.isWorkingOn(id)) }),
    takeover: (body) => ownership.handOver(body),
    adopt: (body) => ownership.adopt(body),
    usage: (body) => answerActivity(activity, body),
    redeem: (body) => tokens.answer(body),
  };
  bus.serve(subjects.gateway(ownership.self, "*"), async (subject, body) => {
    const verb = lastToken(subject);
    if (!Object.hasOwn(answers, verb)) throw new SandgateError("internal_error", `no such call: ${verb}`);
    return answers[verb as GatewayVerb](body);
  });
}
