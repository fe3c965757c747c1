/** How often something may fail from one address. Counted on each gateway alone: a flood of bad calls must not reach the bus. */
import type { Policy } from "../../shared/bus/contract/gateways.ts";
import { TokenBucket } from "./bucket.ts";
import { rateLimited } from "./rates.ts";

const addressesMax = 50_000;

export class AddressLimit {
  readonly #policy: Policy;
  readonly #what: string;
  /** Oldest first, so that the first is the one to forget. */
  readonly #buckets = new Map<string, TokenBucket>();

  /** @param what begins the message of the refusal. */
  constructor(limit: number, windowMs: number, what: string) {
    this.#policy = { limit, burst: limit, windowMs };
    this.#what = what;
  }

  /** Spends nothing. @throws {SandgateError} `rate_limited` when this address has no more tries. */
  refuseExhausted(address: string): void {
    const level = this.#buckets.get(networkOf(address))?.level(this.#policy, performance.now());
    if (level?.remaining === 0) throw rateLimited(this.#what, level);
  }

  /** @throws {SandgateError} `rate_limited` when this address has no more tries. */
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

/** An IPv6 client has a whole /64 of addresses to itself. */
export function networkOf(address: string): string {
  if (!address.includes(":") || address.includes(".")) return address;
  const [before = "", after] = address.split("::", 2);
  const groups = before === "" ? [] : before.split(":");
  // `::` stands for as many zeros as are missing to eight groups.
  if (after !== undefined) while (groups.length + after.split(":").filter(Boolean).length < 8) groups.push("0");
  return groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16))
    .join(":");
}
