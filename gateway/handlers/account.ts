/** The caller's own account: limits, keys and usage. */

import type { Policy } from "../../shared/bus/contract/gateways.ts";
import type { SandboxEntry } from "../../shared/bus/entries.ts";
import {
  type AccountUsage,
  type ApiKeyPage,
  type CurrentAccount,
  type KeyBody,
  type KeyUsage,
  type NewApiKey,
  ownKeysDefault,
  type RevokedApiKey,
} from "../../shared/schemas/accounts.ts";
import type { PageQuery } from "../../shared/schemas/fields.ts";
import type { AccountRecord, KeyRecord, SessionRecord } from "../../shared/schemas/records.ts";
import { policyOf } from "../accounts/auth.ts";
import { createKey, isActive, keysOf, revokeKey } from "../accounts/keys.ts";
import type { Call } from "../call.ts";
import type { GatewayContext } from "../context.ts";
import { rateLimited } from "../limit/rates.ts";
import { lastHour } from "../metrics/activity.ts";
import { accountView, iso, keyView, paginate } from "./views.ts";

/** Limits key creation, because each key is written to the disk of every NATS server. */
const keysMade: Policy = { limit: 200, burst: 200, windowMs: 3_600_000 };

/** The optional features of this version, as reported to the web pages. */
const features = ["snapshots", "sessions"];

/** Those, and what a worker that is there can do. */
const featuresOf = ({ workers }: GatewayContext): string[] => [...features, ...(workers.workers().some(({ worker }) => worker.strong) ? ["strong"] : [])];
const keyNameDefault = "API key";

/** The caller's account. Browsers also receive the CSRF token that their changes must carry. */
export function sessionAnswer(context: GatewayContext, account: AccountRecord, session: SessionRecord | undefined): CurrentAccount {
  const token = session ? { csrf_token: session.csrf_token } : {};
  return { account: accountView(context, account), ...token, features: featuresOf(context), keys_max: context.config.keysPerAccount };
}

export function getAccount(context: GatewayContext, { caller }: Call<unknown, unknown>): CurrentAccount {
  return sessionAnswer(context, caller.account, caller.session);
}

/** All keys, including revoked ones, newest first. */
export function listKeys(context: GatewayContext, { query, caller: { account } }: Call<PageQuery, unknown>): ApiKeyPage {
  const keys = keysOf(context.records, account.id);
  const page = paginate(keys, { page_size: ownKeysDefault, ...query }, (key) => keyView(context, account, key));
  return { ...page, active: keys.filter(isActive).length };
}

/** Creates a key; only this answer shows it. @throws {SandgateError} `conflict` when there are too many, `rate_limited`. */
export async function makeKey({ records, rates, config }: GatewayContext, { exchange, caller, body }: Call<unknown, KeyBody>): Promise<NewApiKey> {
  const verdict = await rates.take(`keys:${caller.account.id}`, keysMade);
  if (!verdict.granted) throw rateLimited(`an account can make at most ${keysMade.limit} keys an hour`, verdict);
  const name = body.name?.trim() || keyNameDefault;
  const { record, apiKey } = await createKey(records, caller.account.id, name, config.keysPerAccount);
  exchange.audited = { target: record.id };
  const { id, prefix, created_at_ms } = record;
  return { id, name, prefix, created_at: iso(created_at_ms), key: apiKey };
}

/** @throws {SandgateError} `not_found`, also for a key of another account. */
export async function endKey({ records }: GatewayContext, { caller, id }: Call<unknown, unknown>): Promise<RevokedApiKey> {
  const { revoked_at_ms = 0 } = await revokeKey(records, id, caller.account.id);
  return { id, message: "API key revoked", revoked_at: iso(revoked_at_ms) };
}

/** Current usage and remaining limits, and the last hour by minute. */
export async function getUsage(context: GatewayContext, { caller: { account } }: Call<unknown, unknown>): Promise<AccountUsage> {
  const keys = keysOf(context.records, account.id).filter(isActive);
  const [history, ...allowances] = await Promise.all([
    lastHour(context, account.id),
    ...keys.map((key) => allowance(context, account, key)),
    allowance(context, account, undefined),
  ]);
  const sandboxes = countByStatus(context.sandboxes.ofAccount(account.id));
  return { timestamp: iso(Date.now()), sandboxes, keys: allowances, history };
}

/** The usage of a key, or of all browsers of the account together. */
async function allowance({ authenticator, rates, reservations }: GatewayContext, account: AccountRecord, key: KeyRecord | undefined): Promise<KeyUsage> {
  const limits = authenticator.limits(account, key);
  const id = key?.id ?? account.id;
  const { remaining } = await rates.level(id, policyOf(limits));
  return {
    id,
    name: key?.name ?? "Dashboard",
    prefix: key?.prefix ?? null,
    dashboard: key === undefined,
    requests: { limit: limits.requestsPerMinute, remaining },
    sandboxes: { used: reservations.used(id), limit: limits.sandboxes },
  };
}

function countByStatus(sandboxes: readonly SandboxEntry[]): AccountUsage["sandboxes"] {
  const count = (wanted: SandboxEntry["status"]): number => sandboxes.filter(({ status }) => status === wanted).length;
  return { running: count("running"), creating: count("creating"), error: count("error"), total: sandboxes.length };
}
