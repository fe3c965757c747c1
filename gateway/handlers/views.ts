/** Accounts, keys and the hosts of workers as answers show them. */
import type { WorkerPresence } from "../../shared/bus/heartbeat.ts";
import type { Account, ApiKey } from "../../shared/schemas/accounts.ts";
import { type PageQuery, type Pagination, pageSizeDefault } from "../../shared/schemas/fields.ts";
import type { Limits } from "../../shared/schemas/limits.ts";
import type { AccountRecord, KeyRecord } from "../../shared/schemas/records.ts";
import type { HostMembers } from "../../shared/schemas/service.ts";
import type { KeyLimits } from "../../shared/tiers.ts";
import type { GatewayContext } from "../context.ts";

/** An account as its owner sees it; the limits are those of its browsers and of keys without numbers of their own. */
export function accountView({ authenticator }: GatewayContext, account: AccountRecord): Account {
  const { id, email, name, tier, operator, created_at_ms } = account;
  const limits = limitsView(authenticator.limits(account));
  return { id, email: email ?? null, name, tier, operator: operator ?? false, created_at: iso(created_at_ms), limits };
}

/** A key as its owner sees it. */
export function keyView({ authenticator, records }: GatewayContext, account: AccountRecord, key: KeyRecord): ApiKey {
  const { id, name, prefix, created_at_ms, revoked_at_ms } = key;
  const limits = authenticator.limits(account, key);
  const usedAtMs = records.keyUse.get(id)?.used_at_ms;
  return {
    id,
    name,
    prefix,
    created_at: iso(created_at_ms),
    last_used_at: usedAtMs === undefined ? null : iso(usedAtMs),
    revoked_at: revoked_at_ms === undefined ? null : iso(revoked_at_ms),
    tier: limits.tier,
    limits: limitsView(limits),
  };
}

/** What a worker's host can do, and what it lacks, by the names of its checks. */
export function hostView({ strong, host }: Pick<WorkerPresence, "strong" | "host">): HostMembers {
  const lacks = host.filter(({ ok }) => !ok).map(({ name }) => name);
  return { strong: strong ?? false, not_enforced: lacks.filter((name) => name.endsWith("_limit")), lacks };
}

/** Milliseconds since 1970 as ISO 8601. */
export function iso(ms: number): string {
  return new Date(ms).toISOString();
}

function limitsView({ requestsPerMinute, burst, sandboxes }: KeyLimits): Limits {
  return { requests_per_minute: requestsPerMinute, burst, sandboxes };
}

/** The range of items on a page, and the pagination info of the answer. */
export function paginationOf(total_items: number, { page = 1, page_size = pageSizeDefault }: PageQuery) {
  const pagination: Pagination = { page, page_size, total_items, total_pages: Math.ceil(total_items / page_size) };
  return { from: (page - 1) * page_size, to: page * page_size, pagination };
}

/** One page of a list, each item converted by `show`. */
export function paginate<T, V>(items: readonly T[], query: PageQuery, show: (item: T) => V): { data: V[]; pagination: Pagination } {
  const { from, to, pagination } = paginationOf(items.length, query);
  return { data: items.slice(from, to).map(show), pagination };
}
