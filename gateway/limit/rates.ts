/**
 * Request rates, exact across all gateways. The owner of a key counts in memory; other gateways ask the owner, which
 * leases tokens in advance to a busy gateway. If the owner does not answer, a gateway admits an even share of the limit,
 * and reports it to the next owner that answers.
 */

import { ask, tell } from "../../shared/bus/calls.ts";
import type { Reply, Request } from "../../shared/bus/contract/contract.ts";
import type { Policy, Taken } from "../../shared/bus/contract/gateways.ts";
import type { Bus } from "../../shared/bus/nats.ts";
import { SandgateError } from "../../shared/errors.ts";
import type { Level, TokenBucket } from "./bucket.ts";
import type { KeyState, Ownership } from "./ownership.ts";

/** Whether a call may proceed, and what is left. */
export interface Verdict extends Level {
  readonly granted: boolean;
}

interface Lease extends Level {
  left: number;
  readonly untilMs: number;
}

/** Calls of one key that wait for its owner. */
interface Asking {
  readonly policy: Policy;
  readonly waiting: ((verdict: Verdict) => void)[];
}

/** How long leased tokens may be used; unused ones are then given back. */
export const leaseMs = 500;
/** How long an owner that did not answer is not asked again. */
const silenceMs = 1_000;
/** A lease is at most the remaining tokens divided by this and by the number of gateways. */
const leasePart = 8;

export class RateLimiter {
  readonly #bus: Bus;
  readonly #ownership: Ownership;
  readonly #leases = new Map<string, Lease>();
  readonly #asking = new Map<string, Asking>();
  readonly #silentUntil = new Map<string, number>();

  constructor(bus: Bus, ownership: Ownership) {
    this.#bus = bus;
    this.#ownership = ownership;
  }

  /** Spends one token of the key: synchronously on the key's owner or within a lease, otherwise after one round trip. */
  take(key: string, policy: Policy): Verdict | Promise<Verdict> {
    const owner = this.#ownership.ownerOf(key);
    if (owner === this.#ownership.self) {
      const state = this.#ownership.state(key);
      return state instanceof Promise ? state.then(({ bucket }) => takeOne(bucket, policy)) : takeOne(state.bucket, policy);
    }
    return this.#takeLeased(key) ?? this.#ask(key, policy);
  }

  /** What is left, without spending anything. */
  async level(key: string, policy: Policy): Promise<Level> {
    const { remaining, next_ms } = await this.#taken(key, policy, 0);
    return { remaining: remaining + (this.#leases.get(key)?.left ?? 0), nextMs: next_ms };
  }

  /** Gives back a token that was just taken and not used. */
  async giveBack(key: string): Promise<void> {
    const owner = this.#ownership.ownerOf(key);
    if (owner === this.#ownership.self) (await this.#ownership.state(key)).bucket.giveBack(1);
    else tell(this.#bus, "return", owner, { key, count: 1 });
  }

  /** Answers a gateway that considers this one the key's owner. */
  answerTake({ key, want, policy, by }: Request<"take">): Taken | Promise<Taken> | { moved_to: string } {
    const owner = this.#ownership.ownerOf(key);
    if (owner !== this.#ownership.self && owner !== by) return { moved_to: owner };
    return this.#takeHere(key, policy, want);
  }

  /** Takes back unused tokens from another gateway. */
  async takeBack({ key, count, prepayment }: Request<"return">): Promise<void> {
    if (this.#ownership.ownerOf(key) === this.#ownership.self) (await this.#ownership.state(key)).bucket.giveBack(count, prepayment);
  }

  /** Synchronous if the state is in memory: during a wait it could be handed over to another gateway. */
  #takeHere(key: string, policy: Policy, want: number): Taken | Promise<Taken> {
    const state = this.#ownership.state(key);
    return state instanceof Promise ? state.then((later) => this.#spend(later, policy, want)) : this.#spend(state, policy, want);
  }

  #spend({ bucket }: KeyState, policy: Policy, want: number): Taken {
    const now = performance.now();
    const granted = bucket.take(policy, want, now);
    let { remaining, nextMs } = bucket.level(policy, now);
    const prepaid = want > 0 && granted === want ? Math.floor(remaining / (leasePart * this.#ownership.gateways().length)) : 0;
    const prepayment = prepaid > 0 ? bucket.prepay(policy, prepaid, now, leaseMs) : 0;
    remaining -= prepaid;
    nextMs = Math.max(1, nextMs);
    return { granted, remaining, next_ms: nextMs, prepaid, prepayment };
  }

  #takeLeased(key: string): Verdict | undefined {
    const lease = this.#leases.get(key);
    if (!lease || lease.left === 0 || performance.now() >= lease.untilMs) return undefined;
    lease.left--;
    return { granted: true, remaining: lease.remaining + lease.left, nextMs: lease.nextMs };
  }

  #ask(key: string, policy: Policy): Promise<Verdict> {
    return new Promise((resolve) => {
      const asking = this.#asking.get(key);
      if (asking) return void asking.waiting.push(resolve);
      const started: Asking = { policy, waiting: [resolve] };
      this.#asking.set(key, started);
      void this.#askFor(key, started);
    });
  }

  /** Asks for all waiting calls at once. Calls that arrive meanwhile are asked for next, unless the reply leases enough tokens. */
  async #askFor(key: string, asking: Asking): Promise<void> {
    while (asking.waiting.length > 0) {
      const waiting = asking.waiting.splice(0);
      const askedAtMs = performance.now();
      const taken = await this.#taken(key, asking.policy, waiting.length);
      const remaining = taken.remaining + taken.prepaid;
      waiting.forEach((resolve, index) =>
        resolve({ granted: index < taken.granted, remaining: remaining + Math.max(0, taken.granted - index - 1), nextMs: taken.next_ms }),
      );
      if (taken.prepaid === 0) continue;
      this.#keepLease(key, taken, askedAtMs + leaseMs);
      while (asking.waiting.length > 0) {
        const leased = this.#takeLeased(key);
        if (!leased) break;
        asking.waiting.shift()?.(leased);
      }
    }
    this.#asking.delete(key);
  }

  /** Stores a lease. The owner reserves the tokens from the time of the request, so `untilMs` counts from then. */
  #keepLease(key: string, { prepaid, prepayment, remaining, next_ms }: Taken, untilMs: number): void {
    const lease: Lease = { left: prepaid, untilMs, remaining, nextMs: next_ms };
    this.#leases.set(key, lease);
    setTimeout(() => {
      if (this.#leases.get(key) === lease) this.#leases.delete(key);
      const owner = this.#ownership.ownerOf(key);
      if (lease.left > 0) tell(this.#bus, "return", owner, { key, count: lease.left, prepayment });
      lease.left = 0;
    }, leaseMs);
  }

  /** Takes tokens from the owner. Never fails: without the owner, this gateway's share of the limit applies. */
  async #taken(key: string, policy: Policy, want: number): Promise<Taken> {
    let owner = this.#ownership.ownerOf(key);
    for (let hop = 0; hop < 2; hop++) {
      if (owner === this.#ownership.self) return this.#takeHere(key, policy, want);
      const taken = await this.#askOwner(owner, key, policy, want);
      if (!taken) break;
      if (!("moved_to" in taken)) {
        this.#tellShare(owner, key);
        return taken;
      }
      owner = taken.moved_to;
    }
    return this.#ownership.shares.take(key, policy, want, this.#ownership.gateways().length);
  }

  #tellShare(owner: string, key: string): void {
    const spent = this.#ownership.shares.tell(key);
    if (spent.length > 0) tell(this.#bus, "adopt", owner, { key, state: { spent, pending: [] } });
  }

  async #askOwner(owner: string, key: string, policy: Policy, want: number): Promise<Reply<"take"> | undefined> {
    if ((this.#silentUntil.get(owner) ?? 0) > performance.now()) return undefined;
    try {
      return await ask(this.#bus, "take", owner, { key, want, policy, by: this.#ownership.self });
    } catch {
      this.#silentUntil.set(owner, performance.now() + silenceMs);
      return undefined;
    }
  }
}

function takeOne(bucket: TokenBucket, policy: Policy): Verdict {
  const now = performance.now();
  const granted = bucket.take(policy, 1, now) === 1;
  const { remaining, nextMs } = bucket.level(policy, now);
  return { granted, remaining, nextMs };
}

/** The error for a call over the rate limit. */
export function rateLimited(what: string, { nextMs }: Level): SandgateError {
  const retryAfterS = Math.max(1, Math.ceil(nextMs / 1_000));
  return new SandgateError("rate_limited", `${what}; try again in ${retryAfterS} second${retryAfterS === 1 ? "" : "s"}`, { retryAfterS });
}
