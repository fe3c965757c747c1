/** Admits calls while the owner of a key is unreachable: an even share of the limit per gateway. */

import type { Policy, Taken } from "../../shared/bus/contract/gateways.ts";
import { type Spent, TokenBucket } from "./bucket.ts";

interface Share {
  readonly bucket: TokenBucket;
  /** The tokens that have not been reported to the owner yet. */
  untold: TokenBucket;
}

const sharesMax = 10_000;

export class Shares {
  readonly #shares = new Map<string, Share>();

  take(key: string, policy: Policy, want: number, gateways: number): Taken {
    const now = performance.now();
    const part = { ...policy, limit: Math.ceil(policy.limit / gateways), burst: Math.ceil(policy.burst / gateways) };
    if (this.#shares.size > sharesMax) this.#shares.clear();
    const share = this.#shares.get(key) ?? { bucket: new TokenBucket(), untold: new TokenBucket() };
    this.#shares.set(key, share);
    const granted = share.bucket.take(part, want, now);
    if (granted > 0) share.untold.take({ ...policy, limit: Number.MAX_SAFE_INTEGER, burst: Number.MAX_SAFE_INTEGER }, granted, now);
    const { remaining, nextMs } = share.bucket.level(part, now);
    return { granted, remaining, next_ms: Math.max(1, nextMs), prepaid: 0, prepayment: 0 };
  }

  /** What was admitted since the last call. */
  tell(key: string): Spent {
    const share = this.#shares.get(key);
    if (!share) return [];
    const spent = share.untold.export(performance.now());
    share.untold = new TokenBucket();
    return spent;
  }
}
