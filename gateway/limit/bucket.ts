/**
 * A token bucket whose tokens come back one by one, each a whole window after it was spent. So no window of time,
 * wherever it begins, sees more than `limit` calls, and a client that asks without a pause gets exactly that many.
 */

/** How many calls in how long. */
export interface Policy {
  /** Calls in any window. */
  readonly limit: number;
  /** Calls at once, at most `limit`; beyond them calls are let in evenly, `limit` in a window. */
  readonly burst: number;
  readonly windowMs: number;
}

/** What a bucket has left. */
export interface Level {
  readonly remaining: number;
  /** When there is more: until the next token comes back. 0 when the bucket is full. */
  readonly nextMs: number;
}

/** Spent tokens on their way to another process: how long until they come back, and how many. */
export type Spent = readonly (readonly [inMs: number, count: number])[];

interface Entry {
  /** When the last of the tokens was spent, plus the window. */
  backAtMs: number;
  /** The same for the first of them. */
  readonly slotMs: number;
  count: number;
  /** Whether later tokens may be counted with these. Prepaid ones are kept apart, because they may be returned. */
  readonly open: boolean;
}

/** Tokens spent within this many milliseconds come back together, with the last of them: it bounds the entries of busy keys. */
const slotMs = 20;

export class TokenBucket {
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
    if (count > 0) this.#spend(count, nowMs + policy.windowMs, true);
    return count;
  }

  /**
   * Spends tokens that somebody will use within `useMs`, and only comes back a window after that.
   * Returns the name under which unused ones are given back.
   */
  prepay(policy: Policy, count: number, nowMs: number, useMs: number): number {
    const backAtMs = nowMs + policy.windowMs + useMs;
    this.#available(policy, nowMs);
    this.#spend(count, backAtMs, false);
    return backAtMs;
  }

  /** Gives back unused tokens: those of a prepayment, or without a name those that were spent last. */
  giveBack(count: number, prepayment?: number): void {
    let rest = count;
    for (let at = this.#entries.length - 1; at >= this.#first && rest > 0; at--) {
      const entry = this.#entries[at] as Entry;
      if (prepayment !== undefined && (entry.backAtMs !== prepayment || entry.open)) continue;
      const returned = Math.min(rest, entry.count);
      entry.count -= returned;
      rest -= returned;
    }
    this.#spent -= count - rest;
    this.#burst.left += count - rest;
  }

  level(policy: Policy, nowMs: number): Level {
    const remaining = this.#available(policy, nowMs);
    return { remaining, nextMs: this.#spent === 0 ? 0 : Math.max(1, this.#nextMs(policy, nowMs)) };
  }

  /** The spent tokens, for the process that goes on with this bucket. */
  export(nowMs: number): Spent {
    this.#expire(nowMs);
    return this.#entries.slice(this.#first).flatMap(({ backAtMs, count }) => (count > 0 ? [[backAtMs - nowMs, count] as const] : []));
  }

  /** Goes on with what another process has spent. */
  import(spent: Spent, nowMs: number): void {
    const others = spent.map(([inMs, count]) => ({ backAtMs: nowMs + inMs, slotMs: nowMs + inMs, count, open: false }));
    this.#entries = [...this.#entries.slice(this.#first), ...others].sort((a, b) => a.backAtMs - b.backAtMs);
    this.#first = 0;
    for (const { count } of others) this.#spent += count;
  }

  #available({ limit, burst, windowMs }: Policy, nowMs: number): number {
    this.#expire(nowMs);
    const left = limit - this.#spent;
    if (burst >= limit) return Math.max(0, left);
    const refilled = this.#burst.left + ((nowMs - this.#burst.atMs) * limit) / windowMs;
    this.#burst = { left: Math.min(burst, refilled), atMs: nowMs };
    return Math.max(0, Math.min(left, Math.floor(this.#burst.left)));
  }

  #spend(count: number, backAtMs: number, open: boolean): void {
    this.#spent += count;
    this.#burst.left -= count;
    const last = this.#entries.length > this.#first ? this.#entries[this.#entries.length - 1] : undefined;
    if (open && last?.open && backAtMs - last.slotMs < slotMs) {
      last.count += count;
      last.backAtMs = backAtMs;
    } else {
      this.#entries.push({ backAtMs, slotMs: backAtMs, count, open });
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

  /** Until there is one token more than now. */
  #nextMs({ limit, burst, windowMs }: Policy, nowMs: number): number {
    let missing = Math.max(1, this.#spent - limit + 1);
    let windowNextMs = 0;
    for (let at = this.#first; at < this.#entries.length && missing > 0; at++) {
      const entry = this.#entries[at] as Entry;
      missing -= entry.count;
      windowNextMs = entry.backAtMs - nowMs;
    }
    if (burst >= limit) return windowNextMs;
    const burstNextMs = ((Math.floor(this.#burst.left) + 1 - this.#burst.left) * windowMs) / limit;
    return this.#spent < limit ? burstNextMs : Math.max(windowNextMs, burstNextMs);
  }
}
