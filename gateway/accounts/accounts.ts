/** Accounts: loads them, creates the first one from the settings, and others for people. */
import { type Config, ConfigError } from "../../shared/config.ts";
import type { AccountRecord, LoginRecord } from "../../shared/schemas/records.ts";
import { newId } from "../../shared/util/ids.ts";
import type { Logger } from "../../shared/util/log.ts";
import type { Base } from "../base.ts";
import { Authenticator } from "./auth.ts";
import { BrowserSessions } from "./browser-sessions.ts";
import { forgetKey, hashKey, KeyUses, keyPrefix } from "./keys.ts";
import { loginKeyOf } from "./login-attempts.ts";
import { Passwords } from "./passwords.ts";
import { openRecords, type Records } from "./records.ts";

export type Accounts = Readonly<Awaited<ReturnType<typeof openAccounts>>>;

/** Loads accounts and keys into memory, and creates the first account. */
export async function openAccounts({ config, bus, log, shutdown }: Base) {
  const records = await openRecords(bus, config, log);
  shutdown.onStop("records", () => records.stop());
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

/** Of the first account: `admin`, an operator whose only active key is the one in the settings. Fixed, so that gateways starting at the same time create only one account. */
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

/** Removes an account that has nothing left: its keys, its login, its browsers, and last the account itself. */
export async function forgetAccount(records: Records, { id, email }: AccountRecord): Promise<void> {
  for (const [hash, key] of [...records.keys.entries()]) if (key.account_id === id) await forgetKey(records, hash, key);
  if (email) await records.logins.delete(loginKeyOf(email));
  for (const [session, { account_id }] of [...records.sessions.entries()]) if (account_id === id) await records.sessions.delete(session);
  await records.accounts.delete(id);
}

/** Among the logins, but no hash of an address, so that nobody logs in with it: says that the first operator is found. */
const firstOperatorKey = "first-operator";

export interface PersonsAccount extends AccountRecord {
  readonly email: string;
}

/** An account of the tier beta, not stored yet. Without a name, that is what stands before the @. */
export function newAccount(typedEmail: string, typedName = ""): PersonsAccount {
  const email = typedEmail.trim();
  const name = typedName.trim() || email.slice(0, email.indexOf("@")).slice(0, 100);
  return { id: newId("account"), name, email, tier: "beta", suspended: false, created_at_ms: Date.now() };
}

/**
 * Stores an account and its login. False when the e-mail address is taken, on whatever gateway; that takes as long.
 *
 * @param password as it is stored
 */
export async function storeAccount({ accounts, logins }: Records, account: PersonsAccount, password: string): Promise<boolean> {
  // First the account, so that no login ever leads nowhere.
  await accounts.put(account.id, account);
  if (await logins.create(loginKeyOf(account.email), loginOf(account, password))) return true;
  // Not waited for: the time until the answer must not tell that there was something to undo.
  accounts.delete(account.id).catch(() => {});
  return false;
}

/** Stores the account of somebody who signs up; the first one becomes an operator where the settings say so. */
export async function storeSignedUp(records: Records, { firstAccountOperator }: Config, account: PersonsAccount, password: string): Promise<boolean> {
  const mayBeFirst = firstAccountOperator && records.logins.values().next().done === true;
  const isStored = await storeAccount(records, account, password);
  if (isStored && mayBeFirst) await makeFirstOperator(records, account);
  return isStored;
}

/** Of several first accounts made at the same time one becomes the operator: the one whose entry the server takes. */
async function makeFirstOperator({ accounts, logins }: Records, account: PersonsAccount): Promise<void> {
  const isFirst = await logins.create(firstOperatorKey, loginOf(account, ""));
  if (isFirst) await accounts.change(account.id, (record) => ({ ...record, operator: true }));
}

const loginOf = ({ id, email, created_at_ms }: PersonsAccount, password: string): LoginRecord => ({
  ...{ account_id: id, email, password, password_version: 1, changed_at_ms: created_at_ms },
});
