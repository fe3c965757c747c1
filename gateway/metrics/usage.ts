/** Activity of an account in the last hour, summed over all gateways. */
import { ask } from "../../shared/bus/calls.ts";
import type { Bus } from "../../shared/bus/nats.ts";
import type { Ownership } from "../limit/ownership.ts";
import { type AccountActivity, type Minute, minuteMs } from "./activity.ts";

const minutesShown = 60;

/** One minute as the API returns it. */
export interface UsageMinute {
  readonly timestamp: string;
  readonly requests: number;
  readonly refused: number;
  readonly sandboxes: number;
}

export class AccountUsage {
  readonly #bus: Bus;
  readonly #ownership: Ownership;
  readonly #activity: AccountActivity;

  constructor(bus: Bus, ownership: Ownership, activity: AccountActivity) {
    this.#bus = bus;
    this.#ownership = ownership;
    this.#activity = activity;
  }

  /** The last 60 minutes, oldest first, including idle ones. A gateway that does not answer is left out. */
  async lastHour(accountId: string): Promise<UsageMinute[]> {
    const others = this.#ownership.gateways().filter((peer) => peer !== this.#ownership.self);
    const replies = await Promise.all(others.map((peer) => ask(this.#bus, "usage", peer, { account_id: accountId }).catch(() => ({ minutes: [] }))));
    const sums = new Map<number, Minute>();
    for (const minute of [...this.#activity.minutesOf(accountId), ...replies.flatMap(({ minutes }) => minutes)]) add(sums, minute);
    const last = Math.floor(Date.now() / minuteMs);
    return Array.from({ length: minutesShown }, (_, index) => shown(sums, last - minutesShown + 1 + index));
  }
}

/** Adds up requests. Sandboxes are not added, because every gateway sees the same ones. */
function add(sums: Map<number, Minute>, { minute, requests, refused, sandboxes }: Minute): void {
  const sum = sums.get(minute) ?? { minute, requests: 0, refused: 0, sandboxes: 0 };
  sum.requests += requests;
  sum.refused += refused;
  sum.sandboxes = Math.max(sum.sandboxes, sandboxes);
  sums.set(minute, sum);
}

function shown(sums: ReadonlyMap<number, Minute>, minute: number): UsageMinute {
  const { requests = 0, refused = 0, sandboxes = 0 } = sums.get(minute) ?? {};
  return { timestamp: new Date(minute * minuteMs).toISOString(), requests, refused, sandboxes };
}
