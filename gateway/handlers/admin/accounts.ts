/** The operator's calls about accounts. */

import { randomBytes } from "node:crypto";
import { SandgateError } from "../../../shared/errors.ts";
import type {
  AccountChange,
  AccountsQuery,
  AdminAccount,
  AdminAccountPage,
  AdminAccountWithKeys,
  AdminNewAccount,
  AdminNewPassword,
  DeletedAccount,
  NewAccountBody,
  PasswordReset,
} from "../../../shared/schemas/admin/accounts.ts";
import type { AccountRecord } from "../../../shared/schemas/records.ts";
import { isolationOf } from "../../../shared/schemas/sandboxes.ts";
import { newestFirst } from "../../../shared/util/newest-first.ts";
import { adminId, forgetAccount, newAccount, storeAccount } from "../../accounts/accounts.ts";
import { isActive, keysOf } from "../../accounts/keys.ts";
import { loginKeyOf } from "../../accounts/login-attempts.ts";
import { withPassword } from "../../accounts/passwords.ts";
import type { Call } from "../../call.ts";
import type { GatewayContext } from "../../context.ts";
import { refOf } from "../../fleet/placement.ts";
import { deleteOne } from "../sandboxes.ts";
import { deleteAll, removeSnapshot } from "../snapshots.ts";
import { accountView, paginate } from "../views.ts";
import { adminKeyView } from "./keys.ts";

/** 20 characters. */
const madeUpPassword = (): string => randomBytes(15).toString("base64url");

/** How many of something each account has. */
type Counts = ReadonlyMap<string, number>;

/** All accounts, newest first; with `email`, those whose address contains it. */
export function listAccounts(context: GatewayContext, { query }: Call<AccountsQuery, unknown>): AdminAccountPage {
  const { records, sandboxes } = context;
  const part = query.email?.trim().toLowerCase();
  const accounts = [...records.accounts.values()].filter(({ email }) => !part || email?.toLowerCase().includes(part));
  const keys = countByAccount([...records.keys.values()].filter(isActive));
  const boxes = new Map(sandboxes.countsByAccount());
  return paginate(newestFirst(accounts), query, (account) => adminAccountView(context, account, keys, boxes));
}

/** One account with all of its keys. @throws {SandgateError} `not_found`. */
export async function getAnyAccount(context: GatewayContext, { id }: Call<unknown, unknown>): Promise<AdminAccountWithKeys> {
  const account = await context.records.accounts.find(checkedId(id));
  if (!account) throw accountNotFound(id);
  // Its keys may have been made at another gateway a moment ago.
  await context.records.keys.caughtUp();
  return withKeys(context, account);
}

/**
 * Creates an account with a password that is made up, also where sign-up is closed. Unlike sign-up, it tells that an address is
 * taken: operators see all of them anyway.
 *
 * @throws {SandgateError} `conflict`.
 */
export async function createAccount(context: GatewayContext, { exchange, body }: Call<unknown, NewAccountBody>): Promise<AdminNewAccount> {
  const { records, passwords } = context;
  const { email, name, ...settings } = body;
  const asked = Object.keys(settings).length > 0 ? { change: settings } : {};
  exchange.audited = asked;
  const password = madeUpPassword();
  const account = { ...newAccount(email, name), ...settings };
  if (!(await storeAccount(records, account, await passwords.hash(password))))
    throw new SandgateError("conflict", "This e-mail address already has an account.");
  exchange.audited = { ...asked, target: account.id };
  return { ...adminAccountView(context, account, new Map(), new Map()), password };
}

/** Changes what is named. @throws {SandgateError} `not_found`; `conflict` when operators would shut themselves out. */
export async function changeAccount(context: GatewayContext, call: Call<unknown, AccountChange>): Promise<AdminAccountWithKeys> {
  const { exchange, id, body, caller } = call;
  const { suspended, operator } = body;
  if (Object.keys(body).length === 0) throw new SandgateError("invalid_request", "Name at least one of tier, limits, suspended, operator and isolation");
  if (id === caller.account.id && (suspended || operator === false)) {
    throw new SandgateError("conflict", "You cannot suspend your own account or stop being an operator; another operator can do that.");
  }
  exchange.audited = { change: body };
  const changed = await context.records.accounts.change(checkedId(id), (account) => changedAccount(account, body));
  if (!changed) throw accountNotFound(id);
  return withKeys(context, changed);
}

/** Changes the password and logs all browsers out. @throws {SandgateError} `not_found`, `conflict` for an account without an address. */
export async function resetPassword(context: GatewayContext, { id, body }: Call<unknown, PasswordReset>): Promise<AdminNewPassword> {
  const { records, passwords } = context;
  const account = await records.accounts.find(checkedId(id));
  if (!account) throw accountNotFound(id);
  const { email } = account;
  const madeUp = body.password === undefined ? { password: madeUpPassword() } : {};
  const password = await passwords.hash(body.password ?? madeUp.password ?? "");
  if (!email || !(await records.logins.change(loginKeyOf(email), (record) => withPassword(record, password))))
    throw new SandgateError("conflict", "This account has no e-mail address, so it has no password either.");
  return { id, email, ...madeUp, message: "Password changed; all browsers of this account are logged out" };
}

/**
 * Deletes an account with all that is its own. It is suspended first, so that nothing is added meanwhile.
 *
 * @throws {SandgateError} `not_found`; `conflict` for the caller's own and the first account; `unavailable` when something is left
 */
export async function deleteAccount(context: GatewayContext, { by, caller, id }: Call<unknown, unknown>): Promise<DeletedAccount> {
  const { records, sandboxes, snapshots, workers } = context;
  if (id === caller.account.id) throw new SandgateError("conflict", "You cannot delete your own account; another operator can do that.");
  if (id === adminId) throw new SandgateError("conflict", "The first account cannot be deleted: it belongs to the installation itself.");
  const account = await records.accounts.change(checkedId(id), (found) => ({ ...found, suspended: true }));
  if (!account) throw accountNotFound(id);
  await Promise.all([sandboxes.caughtUp(), snapshots.caughtUp(), records.keys.caughtUp(), records.sessions.caughtUp()]);
  const theirs = { ...by, account_id: id };
  const boxes = await deleteAll("sandbox", sandboxes.ofAccount(id), (entry) => deleteOne(context, theirs, entry));
  const images = await deleteAll("snapshot", snapshots.ofAccount(id), (entry) => removeSnapshot(context, theirs, entry));
  const left = [...(boxes.errors ?? []), ...(images.errors ?? [])];
  if (left[0]) throw somethingLeft(left.length, left[0].error);
  // The log of a worker that is away is removed there when it has grown old.
  await Promise.all(workers.workers().map((worker) => workers.call(refOf(worker), "forgetAccount", theirs)));
  await forgetAccount(records, account);
  return { id, message: "Account deleted", deleted_sandboxes: boxes.deleted_count, deleted_snapshots: images.deleted_count };
}

const somethingLeft = (count: number, first: string): SandgateError =>
  new SandgateError(
    "unavailable",
    `The account is suspended, but ${count} of its sandboxes and snapshots could not be deleted; try again. The first: ${first}`,
  );

function changedAccount(account: AccountRecord, { tier, limits, suspended, operator, isolation }: AccountChange): AccountRecord {
  const { limits: former, ...rest } = account;
  const next = limits === null ? undefined : limits ? { ...former, ...limits } : former;
  return {
    ...rest,
    ...(next ? { limits: next } : {}),
    ...(tier === undefined ? {} : { tier }),
    ...(suspended === undefined ? {} : { suspended }),
    ...(operator === undefined ? {} : { operator }),
    ...(isolation === undefined ? {} : { isolation }),
  };
}

function withKeys(context: GatewayContext, account: AccountRecord): AdminAccountWithKeys {
  const keys = keysOf(context.records, account.id);
  const counts = [countByAccount(keys.filter(isActive)), countByAccount(context.sandboxes.ofAccount(account.id))] as const;
  return { ...adminAccountView(context, account, ...counts), api_keys: keys.map((key) => adminKeyView(context, account, key)) };
}

function adminAccountView(context: GatewayContext, account: AccountRecord, keys: Counts, sandboxes: Counts): AdminAccount {
  const { id, limits, suspended } = account;
  return {
    ...accountView(context, account),
    custom_limits: limits ?? null,
    suspended,
    isolation: isolationOf(account),
    keys: keys.get(id) ?? 0,
    sandboxes: sandboxes.get(id) ?? 0,
  };
}

function countByAccount(items: Iterable<{ readonly account_id: string }>): Counts {
  const counts = new Map<string, number>();
  for (const { account_id } of items) counts.set(account_id, (counts.get(account_id) ?? 0) + 1);
  return counts;
}

/** What cannot be a key of the bucket is no account either. */
function checkedId(id: string): string {
  if (!/^acct_[0-9a-z]{1,64}$/.test(id)) throw accountNotFound(id);
  return id;
}

const accountNotFound = (id: string): SandgateError => new SandgateError("not_found", `Account not found: ${id.slice(0, 64)}`, { reason: "no_such_account" });
