/** Making an account with a login. */
import type { Config } from "../../shared/config.ts";
import type { AccountRecord, LoginRecord } from "../../shared/schemas/records.ts";
import { newId } from "../../shared/util/ids.ts";
import type { Records } from "./records.ts";

/** Among the logins, but no hash of an address, so that nobody logs in with it: says that the first operator is found. */
const firstOperatorKey = "first-operator";

interface NewLogin {
  readonly loginKey: string;
  readonly email: string;
  readonly name: string;
  /** As it is stored. */
  readonly password: string;
}

/**
 * Stores an account of the tier beta and its login. Undefined when the e-mail address is taken, on whatever gateway; that
 * takes as long.
 */
export async function makeAccount(
  records: Records,
  { firstAccountOperator }: Config,
  { loginKey, email, name, password }: NewLogin,
): Promise<AccountRecord | undefined> {
  const mayBeFirst = firstAccountOperator && records.logins.values().next().done === true;
  const now = Date.now();
  const account: AccountRecord = { id: newId("account"), name, email, tier: "beta", suspended: false, created_at_ms: now };
  const login: LoginRecord = { account_id: account.id, email, password, password_version: 1, changed_at_ms: now };
  // First the account, so that no login ever leads nowhere.
  await records.accounts.put(account.id, account);
  if (!(await records.logins.create(loginKey, login))) {
    // Not waited for: the time until the answer must not tell that there was something to undo.
    records.accounts.delete(account.id).catch(() => {});
    return undefined;
  }
  return mayBeFirst ? asFirstOperator(records, account, login) : account;
}

/** Of several first accounts made at the same time one becomes the operator: the one whose entry the server takes. */
async function asFirstOperator(records: Records, account: AccountRecord, login: LoginRecord): Promise<AccountRecord> {
  const isFirst = await records.logins.create(firstOperatorKey, { ...login, password: "" });
  if (!isFirst) return account;
  return (await records.accounts.change(account.id, (record) => ({ ...record, operator: true }))) ?? account;
}
