/**
 * A token bucket whose tokens return one by one, each a full window after it was spent. So no window of time, wherever it
 * begins, has more than `limit` calls, and a client that calls continuously gets exactly that many.
 */

import type { Counted, Policy } from "../../shared/bus/contract/gateways.ts";

/** What a bucket has left. */
export interface Level {
  readonly remaining: number;
  /** Milliseconds until the next token returns; 0 when the bucket is full. */
  readonly nextMs: number;
}

/** Spent tokens, for transfer to another process: time until they return, count, and prepayment id or 0. */
export type Spent = Counted["spent"];

interface Entry {
  /** When the last of the tokens was spent, plus the window. */
  backAtMs: number;
  /** The same for the first of them. */
  readonly slotMs: number;
  count: number;
  /** Whether later tokens may be counted with these. */
  readonly open: boolean;
  /** The id under which unused tokens may be given back; 0 if none. */
  readonly prepayment: number;
}

/** Tokens spent within this many milliseconds return together with the last of them, which bounds the entries of busy keys. */
const slotMs = 20;
/** Tolerance, so that a token is not missed through floating-point rounding. */
const roundingError = 1e-6;

export class TokenBucket {
  /** Ordered by the time at which the tokens return. */
  #entries: Entry[] = [];
  #first = 0;
  #spent = 0;
  /** The burst tokens left, for policies whose burst is below the limit. */
  #burst = { left: Number.POSITIVE_INFINITY, atMs: 0 };

  /** Whether nothing is spent, so that the bucket equals a new one. */
  isFull(nowMs: number): boolean {
    this.#expire(nowMs);
    return this.#spent === 0;
  }

  /** Spends up to `want` tokens. Returns the number spent. */
  take(policy: Policy, want: number, nowMs: number): number {
    const count = Math.min(want, this.#available(policy, nowMs));
    if (count > 0) this.#spend(count, nowMs + policy.windowMs, 0);
    return count;
  }

  /**
   * Spends tokens that another process may use within `useMs`; they return a window after that. Returns the id under which
   * unused tokens are given back, to this bucket or to the process that has taken it over.
   */
  prepay(policy: Policy, count: number, nowMs: number, useMs: number): number {
    const prepayment = Math.random();
    this.#available(policy, nowMs);
    this.#spend(count, nowMs + policy.windowMs + useMs, prepayment);
    return prepayment;
  }

  /** Gives back unused tokens: those of a prepayment, or otherwise the ones last spent by `take`. */
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

  /** The spent tokens, for the process that takes over this bucket. */
  export(nowMs: number): Spent {
    this.#expire(nowMs);
    return this.#entries.slice(this.#first).flatMap(({ backAtMs, count, prepayment }) => (count > 0 ? [[backAtMs - nowMs, count, prepayment] as const] : []));
  }

  /** The burst tokens left; undefined if the policy has no separate burst. */
  exportBurst(nowMs: number): Counted["burst"] {
    const { left, atMs } = this.#burst;
    return Number.isFinite(left) ? { left, agoMs: nowMs - atMs } : undefined;
  }

  /** Adds what another process has spent. */
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

  /** Whole burst tokens. */
  get #burstTokens(): number {
    return Math.floor(this.#burst.left + roundingError);
  }

  #spend(count: number, backAtMs: number, prepayment: number): void {
    const open = prepayment === 0;
    this.#spent += count;
    this.#burst.left -= count;
    // Only prepayments, which return later, come after it.
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

  /** Milliseconds until one more token is available than now; 0 if the bucket already has as many as it can. */
  #nextMs({ limit, burst, windowMs }: Policy, nowMs: number, remaining: number): number {
    const windowNextMs = this.#backMs(this.#spent - limit + remaining + 1, nowMs);
    if (burst >= limit || remaining >= burst) return windowNextMs;
    const burstNextMs = this.#burstTokens > remaining ? 0 : ((remaining + 1 - this.#burst.left) * windowMs) / limit;
    return Math.max(windowNextMs, burstNextMs);
  }

  /** Milliseconds until this many tokens have returned. */
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
