/** Activity of accounts in the last hour, per minute, for the charts. Kept in memory only: a restart clears it. */

import { ask } from "../../shared/bus/calls.ts";
import type { Bus } from "../../shared/bus/nats.ts";
import type { UsageMinute } from "../../shared/schemas/accounts.ts";
import { every } from "../../shared/util/background.ts";
import type { Logger } from "../../shared/util/log.ts";
import type { Caller } from "../call.ts";
import type { SandboxDirectory } from "../fleet/sandboxes.ts";
import type { Ownership } from "../limit/ownership.ts";

/** The activity of one account in one minute. */
interface Minute {
  /** Minutes since the Unix epoch. */
  readonly minute: number;
  requests: number;
  refused: number;
  /** The most sandboxes seen at one time. */
  sandboxes: number;
}

const minuteMs = 60_000;
const minutesKept = 60;
const sampleMs = 10_000;

export class AccountActivity {
  readonly #directory: SandboxDirectory;
  readonly #accounts = new Map<string, Minute[]>();
  readonly #timer: NodeJS.Timeout;

  constructor(directory: SandboxDirectory, log: Logger) {
    this.#directory = directory;
    this.#timer = every(sampleMs, log, "could not count the sandboxes of accounts", () => this.#sample()).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Counts one call of an account. */
  count(caller: Caller, granted: boolean): void {
    const now = this.#now(caller.account.id);
    now.requests++;
    if (!granted) now.refused++;
  }

  /** The minutes in which the account was active, oldest first. */
  minutesOf(accountId: string): readonly Minute[] {
    return this.#accounts.get(accountId) ?? [];
  }

  #now(accountId: string): Minute {
    const minute = Math.floor(Date.now() / minuteMs);
    let minutes = this.#accounts.get(accountId);
    if (!minutes) {
      minutes = [];
      this.#accounts.set(accountId, minutes);
    }
    let last = minutes.at(-1);
    if (last?.minute !== minute) {
      last = { minute, requests: 0, refused: 0, sandboxes: 0 };
      minutes.push(last);
      if (minutes.length > minutesKept) minutes.shift();
    }
    return last;
  }

  #sample(): void {
    for (const [accountId, count] of this.#directory.countsByAccount()) {
      const now = this.#now(accountId);
      now.sandboxes = Math.max(now.sandboxes, count);
    }
    const oldest = Math.floor(Date.now() / minuteMs) - minutesKept;
    for (const [accountId, minutes] of this.#accounts) if ((minutes.at(-1)?.minute ?? 0) < oldest) this.#accounts.delete(accountId);
  }
}

const minutesShown = 60;

/** What an account did in the last 60 minutes on all gateways, oldest first, including idle minutes. A gateway that does not answer is left out. */
export async function lastHour(
  { bus, ownership, activity }: { bus: Bus; ownership: Ownership; activity: AccountActivity },
  accountId: string,
): Promise<UsageMinute[]> {
  const others = ownership.gateways().filter((peer) => peer !== ownership.self);
  const replies = await Promise.all(others.map((peer) => ask(bus, "usage", peer, { account_id: accountId }).catch(() => ({ minutes: [] }))));
  const sums = new Map<number, Minute>();
  for (const minute of [...activity.minutesOf(accountId), ...replies.flatMap(({ minutes }) => minutes)]) add(sums, minute);
  const last = Math.floor(Date.now() / minuteMs);
  return Array.from({ length: minutesShown }, (_, index) => shown(sums, last - minutesShown + 1 + index));
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
