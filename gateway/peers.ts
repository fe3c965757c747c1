/** The calls that one gateway answers for the others: limits of keys that it owns, and what it has counted. */
import type { Bus } from "../shared/nats.ts";
import { type GatewayVerb, lastToken, subjects } from "../shared/subjects.ts";
import type { Activity } from "./activity.ts";
import type { Idempotency } from "./idempotency.ts";
import { checkHeld } from "./limit/messages.ts";
import type { Ownership } from "./limit/ownership.ts";
import type { RateLimiter } from "./limit/rates.ts";
import type { Reservations } from "./limit/reservations.ts";
import { answerActivity } from "./usage.ts";

interface Answerers {
  readonly ownership: Ownership;
  readonly rates: RateLimiter;
  readonly reservations: Reservations;
  readonly idempotency: Idempotency;
  readonly activity: Activity;
}

/** Starts to answer. */
export function servePeers(bus: Bus, { ownership, rates, reservations, idempotency, activity }: Answerers): void {
  const answers: Readonly<Record<GatewayVerb, (body: unknown) => unknown>> = {
    take: (body) => rates.answerTake(body),
    return: (body) => rates.takeBack(body),
    reserve: (body) => reservations.answerReserve(body),
    settle: (body) => reservations.answerSettle(body),
    held: (body) => ({ ids: checkHeld(body).ids.filter((id) => reservations.holds(id) || idempotency.isWorkingOn(id)) }),
    takeover: (body) => ownership.handOver(body),
    adopt: (body) => ownership.adopt(body),
    usage: (body) => answerActivity(activity, body),
  };
  bus.serve(subjects.gateway(ownership.self, "*"), async (subject, body) => answers[lastToken(subject) as GatewayVerb]?.(body));
}
