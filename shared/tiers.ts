/** What a key may do at most: its own numbers, else its account's, else those of the tier. */
import type { CustomLimits, Tier } from "./schemas/limits.ts";
import type { AccountRecord, KeyRecord } from "./schemas/records.ts";

/** The limits of one key, complete. */
export interface KeyLimits {
  readonly tier: Tier;
  /** Requests in any minute. */
  readonly requestsPerMinute: number;
  /** Requests at once, at most `requestsPerMinute`. */
  readonly burst: number;
  /** Sandboxes at the same time. */
  readonly sandboxes: number;
}

/** Requests a minute and sandboxes; those of the enterprise tier are settings. */
export type TierNumbers = Readonly<Record<Tier, { readonly requests: number; readonly sandboxes: number }>>;

export function tierNumbers(config: { enterpriseRequests: number; enterpriseSandboxes: number }): TierNumbers {
  return {
    beta: { requests: 60, sandboxes: 10 },
    pro: { requests: 300, sandboxes: 50 },
    enterprise: { requests: config.enterpriseRequests, sandboxes: config.enterpriseSandboxes },
  };
}

/**
 * The limits of a key, or of the account's own pages when `key` is absent.
 * Numbers of the account do not reach a key that an operator has given another tier.
 */
export function limitsOf(numbers: TierNumbers, account: AccountRecord, key?: KeyRecord): KeyLimits {
  const tier = key?.tier ?? account.tier;
  const given: CustomLimits = { ...(key?.tier ? {} : account.limits), ...key?.limits };
  const requestsPerMinute = given.requests_per_minute ?? numbers[tier].requests;
  return {
    tier,
    requestsPerMinute,
    burst: Math.min(given.burst ?? requestsPerMinute, requestsPerMinute),
    sandboxes: given.sandboxes ?? numbers[tier].sandboxes,
  };
}
