/** The limits of a key: its own, else those of its account, else those of the tier. */
import type { CustomLimits, Tier } from "./schemas/limits.ts";
import type { AccountRecord, KeyRecord } from "./schemas/records.ts";

/** The limits of one key, all resolved. */
export interface KeyLimits {
  readonly tier: Tier;
  /** Requests per minute. */
  readonly requestsPerMinute: number;
  /** Requests that may arrive at once; at most `requestsPerMinute`. */
  readonly burst: number;
  /** Sandboxes at the same time. */
  readonly sandboxes: number;
}

/** Requests per minute and sandboxes of each tier; those of the enterprise tier are settings. */
export type TierNumbers = Readonly<Record<Tier, { readonly requests: number; readonly sandboxes: number }>>;

export function tierNumbers(config: { enterpriseRequests: number; enterpriseSandboxes: number }): TierNumbers {
  return {
    beta: { requests: 60, sandboxes: 10 },
    pro: { requests: 300, sandboxes: 50 },
    enterprise: { requests: config.enterpriseRequests, sandboxes: config.enterpriseSandboxes },
  };
}

/**
 * The limits of a key, or of the account's own pages if `key` is absent.
 * Custom limits of the account do not apply to a key that an operator has given another tier.
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
