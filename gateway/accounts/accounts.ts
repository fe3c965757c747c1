/** Accounts and authentication. */

import { type Config, ConfigError } from "../../shared/config.ts";
import { newId } from "../../shared/util/ids.ts";
import type { Logger } from "../../shared/util/log.ts";
import type { Base } from "../base.ts";
import { Authenticator } from "./auth.ts";
import { BrowserSessions } from "./browser-sessions.ts";
import { hashKey, KeyUses, keyPrefix } from "./keys.ts";
import { Passwords } from "./passwords.ts";
import { openRecords, type Records } from "./records.ts";

export interface Accounts {
  readonly records: Records;
  readonly sessions: BrowserSessions;
  readonly passwords: Passwords;
  readonly authenticator: Authenticator;
  readonly keyUses: KeyUses;
}

/** Loads accounts and keys into memory, and creates the first account. */
export async function openAccounts({ config, bus, log, lifecycle }: Base): Promise<Accounts> {
  const records = await openRecords(bus, config, log);
  lifecycle.onStop("records", () => records.stop());
  await bootstrap(config, records, log);
  const sessions = new BrowserSessions(records, config, log);
  return {
    records,
    sessions,
    passwords: new Passwords(config.testPasswordCost),
    authenticator: new Authenticator(records, sessions, config),
    keyUses: new KeyUses(records.keyUse, log),
  };
}

/** Fixed, so that gateways starting at the same time create only one account. */
export const adminId = `acct_${"0".repeat(26)}`;
const keyCharsMin = 20;

/** Creates the account and its key if they are missing, and revokes former keys. */
export async function bootstrap(config: Config, { accounts, keys }: Records, log: Logger): Promise<void> {
  const apiKey = config.bootstrapApiKey;
  if (!apiKey) return;
  if (apiKey.length < keyCharsMin) throw new ConfigError(`SANDGATE_BOOTSTRAP_API_KEY must have at least ${keyCharsMin} characters`);
  const now = Date.now();
  const admin = accounts.get(adminId);
  if (!admin) await accounts.put(adminId, { id: adminId, name: "admin", tier: "enterprise", suspended: false, operator: true, created_at_ms: now });
  else if (!admin.operator) await accounts.change(adminId, (record) => ({ ...record, operator: true }));
  const hash = hashKey(apiKey);
  for (const [storedHash, key] of keys.entries()) {
    if (key.account_id !== adminId || storedHash === hash || key.revoked_at_ms !== undefined) continue;
    await keys.change(storedHash, (record) => ({ ...record, revoked_at_ms: now }));
    log.warn({ event: "key_revoked", key_id: key.id }, "the former bootstrap key is revoked");
  }
  const known = keys.get(hash);
  if (known && known.revoked_at_ms === undefined) return;
  await keys.put(hash, { id: known?.id ?? newId("key"), account_id: adminId, name: "bootstrap", prefix: keyPrefix(apiKey), created_at_ms: now });
  log.info({ event: "key_created", account: adminId }, "the bootstrap key is in place");
}
