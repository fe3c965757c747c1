/** Accounts and authentication. */
import type { Base } from "../base.ts";
import type { Limits } from "../limit/limits.ts";
import { Authenticator } from "./auth.ts";
import { bootstrap } from "./bootstrap.ts";
import { BrowserSessions } from "./browser-sessions.ts";
import { KeyUses } from "./key-uses.ts";
import { LoginAttempts } from "./login-attempts.ts";
import { Passwords } from "./passwords.ts";
import { openRecords, type Records } from "./records.ts";

export interface Accounts {
  readonly records: Records;
  readonly sessions: BrowserSessions;
  readonly passwords: Passwords;
  readonly loginAttempts: LoginAttempts;
  readonly authenticator: Authenticator;
  readonly keyUses: KeyUses;
}

/** Loads accounts and keys into memory, and creates the first account. */
export async function openAccounts({ config, bus, log, lifecycle }: Base, { rates, failures }: Limits): Promise<Accounts> {
  const records = await openRecords(bus, config, log);
  lifecycle.onStop("records", () => records.stop());
  await bootstrap(config, records, log);
  const sessions = new BrowserSessions(records, config, log);
  const passwords = new Passwords(config.testPasswordCost);
  return {
    records,
    sessions,
    passwords,
    loginAttempts: new LoginAttempts({ config, records, passwords, rates, failures }),
    authenticator: new Authenticator(records, sessions, config),
    keyUses: new KeyUses(records.keyUse, log),
  };
}
