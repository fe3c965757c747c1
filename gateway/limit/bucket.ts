/**
 * A token bucket whose tokens come back one by one, each a whole window after it was spent. So no window of time,
 * wherever it begins, sees more than `limit` calls, and a client that asks without a pause gets exactly that many.
 */

import type { Counted, Policy } from "../../shared/bus/contract/gateways.ts";

/** What a bucket has left. */
export interface Level {
  readonly remaining: number;
  /** When there is more: until the next token comes back. 0 when the bucket is full. */
  readonly nextMs: number;
}

/** Spent tokens on their way to another process: how long until they come back, how many, and their prepayment or 0. */
export type Spent = Counted["spent"];

interface Entry {
  /** When the last of the tokens was spent, plus the window. */
  backAtMs: number;
  /** The same for the first of them. */
  readonly slotMs: number;
  count: number;
  /** Whether later tokens may be counted with these. */
  readonly open: boolean;
  /** Under which unused ones may be given back; else 0. */
  readonly prepayment: number;
}

/** Tokens spent within this many milliseconds come back together, with the last of them: it bounds the entries of busy keys. */
const slotMs = 20;
/** So that a token which is there to the last digit but one is not missed. */
const roundingError = 1e-6;

export class TokenBucket {
  /** By the time at which they come back. */
  #entries: Entry[] = [];
  #first = 0;
  #spent = 0;
  /** What is left of the burst, for policies where that is less than the limit. */
  #burst = { left: Number.POSITIVE_INFINITY, atMs: 0 };

  /** Whether nothing is spent, so that it is the same as a new one. */
  isFull(nowMs: number): boolean {
    this.#expire(nowMs);
    return this.#spent === 0;
  }

  /** Spends up to `want` tokens and returns how many there were. */
  take(policy: Policy, want: number, nowMs: number): number {
    const count = Math.min(want, this.#available(policy, nowMs));
    if (count > 0) this.#spend(count, nowMs + policy.windowMs, 0);
    return count;
  }

  /**
   * Spends tokens that somebody will use within `useMs`, and only comes back a window after that.
   * Returns the name under which unused ones are given back, here or to the process that goes on with this bucket.
   */
  prepay(policy: Policy, count: number, nowMs: number, useMs: number): number {
    const prepayment = Math.random();
    this.#available(policy, nowMs);
    this.#spend(count, nowMs + policy.windowMs + useMs, prepayment);
    return prepayment;
  }

  /** Gives back unused tokens: those of a prepayment, or without a name those that were spent last by `take`. */
  giveBack(count: number, prepayment = 0): void {
    let rest = count;
    for (let at = this.#entries.length - 1; at >= this.#first && rest > 0; at--) {
      const entry = this.#entries[at] as Entry;
      if (entry.prepayment !== prepayment) continue;
      const returned = Math.min(rest, entry.count);
      entry.count -= returned;
      rest -= returned;
    }
    this.#spent -= count - rest;
    this.#burst.left += count - rest;
  }

  level(policy: Policy, nowMs: number): Level {
    const remaining = this.#available(policy, nowMs);
    return { remaining, nextMs: this.#spent === 0 ? 0 : Math.max(1, this.#nextMs(policy, nowMs, remaining)) };
  }

  /** The spent tokens, for the process that goes on with this bucket. */
  export(nowMs: number): Spent {
    this.#expire(nowMs);
    return this.#entries.slice(this.#first).flatMap(({ backAtMs, count, prepayment }) => (count > 0 ? [[backAtMs - nowMs, count, prepayment] as const] : []));
  }

  /** What is left of the burst; undefined as long as the policy has none of its own. */
  exportBurst(nowMs: number): Counted["burst"] {
    const { left, atMs } = this.#burst;
    return Number.isFinite(left) ? { left, agoMs: nowMs - atMs } : undefined;
  }

  /** Goes on with what another process has spent. */
  import(spent: Spent, nowMs: number, burst?: Counted["burst"]): void {
    const others = spent.map(([inMs, count, prepayment]) => ({ backAtMs: nowMs + inMs, slotMs: nowMs + inMs, count, open: false, prepayment }));
    this.#entries = [...this.#entries.slice(this.#first), ...others].sort((a, b) => a.backAtMs - b.backAtMs);
    this.#first = 0;
    for (const { count } of others) this.#spent += count;
    if (burst && burst.left < this.#burst.left) this.#burst = { left: burst.left, atMs: nowMs - burst.agoMs };
  }

  #available({ limit, burst, windowMs }: Policy, nowMs: number): number {
    this.#expire(nowMs);
    const left = limit - this.#spent;
    if (burst >= limit) return Math.max(0, left);
    const refilled = this.#burst.left + ((nowMs - this.#burst.atMs) * limit) / windowMs;
    this.#burst = { left: Math.min(burst, refilled), atMs: nowMs };
    return Math.max(0, Math.min(left, this.#burstTokens));
  }

  /** Whole tokens of the burst. */
  get #burstTokens(): number {
    return Math.floor(this.#burst.left + roundingError);
  }

  #spend(count: number, backAtMs: number, prepayment: number): void {
    const open = prepayment === 0;
    this.#spent += count;
    this.#burst.left -= count;
    // Behind it are only prepayments, which come back later.
    let at = this.#entries.length;
    while (at > this.#first && (this.#entries[at - 1] as Entry).backAtMs > backAtMs) at--;
    const last = at > this.#first ? this.#entries[at - 1] : undefined;
    if (open && last?.open && backAtMs - last.slotMs < slotMs) {
      last.count += count;
      last.backAtMs = backAtMs;
    } else {
      this.#entries.splice(at, 0, { backAtMs, slotMs: backAtMs, count, open, prepayment });
    }
  }

  #expire(nowMs: number): void {
    while (this.#first < this.#entries.length) {
      const entry = this.#entries[this.#first] as Entry;
      if (entry.backAtMs > nowMs) break;
      this.#spent -= entry.count;
      this.#first++;
    }
    if (this.#first > 64 && this.#first * 2 > this.#entries.length) {
      this.#entries = this.#entries.slice(this.#first);
      this.#first = 0;
    }
  }

  /** Until there is one token more than now; 0 when there are no more at once. */
  #nextMs({ limit, burst, windowMs }: Policy, nowMs: number, remaining: number): number {
    const windowNextMs = this.#backMs(this.#spent - limit + remaining + 1, nowMs);
    if (burst >= limit || remaining >= burst) return windowNextMs;
    const burstNextMs = this.#burstTokens > remaining ? 0 : ((remaining + 1 - this.#burst.left) * windowMs) / limit;
    return Math.max(windowNextMs, burstNextMs);
  }

  /** Until so many tokens have come back. */
  #backMs(count: number, nowMs: number): number {
    let missing = count;
    for (let at = this.#first; at < this.#entries.length && missing > 0; at++) {
      const entry = this.#entries[at] as Entry;
      missing -= entry.count;
      if (missing <= 0) return entry.backAtMs - nowMs;
    }
    return 0;
  }
}
