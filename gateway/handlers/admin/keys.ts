/** The operator's calls about API keys. */

import { SandgateError } from "../../../shared/errors.ts";
import type { AdminApiKey, AdminApiKeyPage, AdminRevokedApiKey, KeyChange, KeysQuery } from "../../../shared/schemas/admin/accounts.ts";
import type { AccountRecord, KeyRecord } from "../../../shared/schemas/records.ts";
import { newestFirst } from "../../../shared/util/newest-first.ts";
import { findKey, keyNotFound, revokeKey } from "../../accounts/keys.ts";
import type { Call } from "../../call.ts";
import type { GatewayContext } from "../../context.ts";
import { iso, keyView, paginate } from "../views.ts";

/** A key as operators see it. */
export function adminKeyView(context: GatewayContext, account: AccountRecord, key: KeyRecord): AdminApiKey {
  const { account_id, tier, limits, id } = key;
  return {
    ...keyView(context, account, key),
    account_id,
    custom_tier: tier ?? null,
    custom_limits: limits ?? null,
    sandboxes: context.sandboxes.countOfKey(id),
  };
}

/** The keys of all accounts or of one, newest first. */
export function listAllKeys(context: GatewayContext, { query }: Call<KeysQuery, unknown>): AdminApiKeyPage {
  const { accounts, keys } = context.records;
  const owned = [...keys.values()].flatMap((key) => {
    const account = query.account_id === undefined || query.account_id === key.account_id ? accounts.get(key.account_id) : undefined;
    return account ? [{ id: key.id, created_at_ms: key.created_at_ms, account, key }] : [];
  });
  return paginate(newestFirst(owned), query, ({ account, key }) => adminKeyView(context, account, key));
}

/** Gives a key a tier or numbers of its own, or takes them away. @throws {SandgateError} `not_found`. */
export async function changeKey(context: GatewayContext, { exchange, id, body }: Call<unknown, KeyChange>): Promise<AdminApiKey> {
  const { records } = context;
  if (body.tier === undefined && body.limits === undefined) throw new SandgateError("invalid_request", "Name at least one of tier and limits");
  const { hash, key: found } = await findKey(records, id);
  exchange.audited = { change: body, owner: found.account_id };
  const changed = await records.keys.change(hash, (key) => changedKey(key, body));
  const account = changed && (await records.accounts.find(changed.account_id));
  if (!changed || !account) throw keyNotFound(id);
  return adminKeyView(context, account, changed);
}

/** @throws {SandgateError} `not_found` */
export async function endAnyKey({ records }: GatewayContext, { exchange, id }: Call<unknown, unknown>): Promise<AdminRevokedApiKey> {
  const { revoked_at_ms = 0, account_id } = await revokeKey(records, id);
  exchange.audited = { owner: account_id };
  return { id, account_id, message: "API key revoked", revoked_at: iso(revoked_at_ms) };
}

function changedKey({ tier: formerTier, limits: formerLimits, ...rest }: KeyRecord, { tier, limits }: KeyChange): KeyRecord {
  const nextTier = tier === undefined ? formerTier : (tier ?? undefined);
  const nextLimits = limits === null ? undefined : limits ? { ...formerLimits, ...limits } : formerLimits;
  return { ...rest, ...(nextTier ? { tier: nextTier } : {}), ...(nextLimits ? { limits: nextLimits } : {}) };
}
