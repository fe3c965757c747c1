/** Limits failures per address. Counted on each gateway separately, so that a flood of bad calls does not reach the bus. */
import ipaddr from "ipaddr.js";
import type { Policy } from "../../shared/bus/contract/gateways.ts";
import { TokenBucket } from "./bucket.ts";
import { rateLimited } from "./rates.ts";

const addressesMax = 50_000;

export class AddressLimit {
  readonly #policy: Policy;
  readonly #what: string;
  /** Least recently used first, so that the first is the one to evict. */
  readonly #buckets = new Map<string, TokenBucket>();

  /** @param what the beginning of the error message. */
  constructor(limit: number, windowMs: number, what: string) {
    this.#policy = { limit, burst: limit, windowMs };
    this.#what = what;
  }

  /** Checks without spending a try. @throws {SandgateError} `rate_limited` when this address has no tries left. */
  refuseExhausted(address: string): void {
    const level = this.#buckets.get(networkOf(address))?.level(this.#policy, performance.now());
    if (level?.remaining === 0) throw rateLimited(this.#what, level);
  }

  /** Spends a try. @throws {SandgateError} `rate_limited` when this address has none left. */
  take(address: string): void {
    const now = performance.now();
    const name = networkOf(address);
    const bucket = this.#buckets.get(name) ?? new TokenBucket();
    this.#buckets.delete(name);
    this.#buckets.set(name, bucket);
    if (bucket.take(this.#policy, 1, now) === 0) throw rateLimited(this.#what, bucket.level(this.#policy, now));
    if (this.#buckets.size > addressesMax) this.#buckets.delete(this.#buckets.keys().next().value as string);
  }
}

/**
 * The unit that is limited: an IPv4 address, or an IPv6 /64 network, because one client can use all of its addresses.
 * A socket that listens for both gives IPv4 addresses as `::ffff:a.b.c.d`.
 */
export function networkOf(text: string): string {
  if (!ipaddr.isValid(text)) return text;
  const address = ipaddr.process(text);
  return "parts" in address ? address.parts.slice(0, 4).join(":") : address.toString();
}
