/** accounts, account, create-account, set, suspend, resume, password, delete-account. */
import type { Command } from "commander";
import type { AdminAccount } from "../../client/types.ts";
import type { Isolation } from "../../schemas/sandboxes.ts";
import { UsageError } from "../failures.ts";
import { ago, type Output } from "../output.ts";
import { given } from "../task.ts";
import { isolation } from "../values.ts";
import { keyTable } from "./keys.ts";
import { type LimitOptions, limitChange, limitsNamed, limitsText, withLimitChange, withLimits } from "./limits.ts";
import { type AdminOptions, type AdminTask, accountId, doing } from "./task.ts";

const nameOf = ({ email, name, id }: AdminAccount): string => `${email ?? name} (${id})`;
const statusOf = ({ suspended, operator }: AdminAccount): string => [suspended && "suspended", operator && "operator"].filter(Boolean).join(", ");

async function list({ client, out }: AdminTask, { email }: AdminOptions & { email?: string }): Promise<void> {
  const data = await client.admin.accounts.list({ email }).all();
  const rows = data.map((account) => {
    const { id, email, name, tier, limits, custom_limits, keys, sandboxes, created_at, suspended } = account;
    const numbers = `${limits.requests_per_minute}/min, ${limits.sandboxes}${custom_limits ? " *" : ""}`;
    return { cells: [id, email, name, tier, numbers, keys, sandboxes, ago(created_at), statusOf(account)], style: suspended ? ("red" as const) : undefined };
  });
  const titles = ["ID", "E-MAIL", "NAME", "TIER", "LIMITS", "KEYS", "SANDBOXES", "CREATED", "STATUS"];
  out.list(data, () => out.table(titles, rows, "No accounts."));
}

async function show(task: AdminTask, _options: AdminOptions, name: string): Promise<void> {
  const { client, out } = task;
  const account = await client.admin.accounts.get(await accountId(task, name));
  out.show(account, () => {
    printAccount(out, account);
    out.line();
    keyTable(out, account.api_keys);
  });
}

interface AccountOptions extends LimitOptions {
  readonly operator?: boolean;
  readonly isolation?: Isolation;
}

async function create({ client, out }: AdminTask, options: AccountOptions & { name?: string }, email: string): Promise<void> {
  const { name, operator, isolation } = options;
  const account = await client.admin.accounts.create({ email, ...limitsNamed(options), ...given({ name, operator, isolation }) });
  out.show(account, () => {
    printAccount(out, account);
    printPassword(out, account);
  });
}

async function set(task: AdminTask, options: AccountOptions, name: string): Promise<void> {
  const { operator, isolation } = options;
  const change = { ...limitChange(options), ...given({ operator, isolation }) };
  if (Object.keys(change).length === 0) throw new UsageError("set requires at least one option, such as --tier pro");
  const { client, out } = task;
  const account = await client.admin.accounts.change(await accountId(task, name), change);
  out.show(account, () => printAccount(out, account));
}

async function suspend(task: AdminTask, _options: AdminOptions, name: string): Promise<void> {
  await task.confirm(`Suspend ${name}? Its calls in progress end at once.`);
  await setSuspended(task, name, true);
}

async function setSuspended(task: AdminTask, name: string, suspended: boolean): Promise<void> {
  const { client, out } = task;
  const account = await client.admin.accounts.change(await accountId(task, name), { suspended });
  out.show(account, () => out.text(`${nameOf(account)} ${suspended ? "is suspended" : "is active again"}.`));
}

async function resetPassword(task: AdminTask, _options: AdminOptions, name: string): Promise<void> {
  await task.confirm(`Give ${name} a new password? All of its browsers are logged out.`);
  const { client, out } = task;
  const answer = await client.admin.accounts.resetPassword(await accountId(task, name));
  out.show(answer, () => printPassword(out, answer));
}

function printPassword(out: Output, { email, password = "" }: { email: string | null; password?: string }): void {
  out.text(`${email} logs in with this password from now on, and can change it on the web page:`);
  out.line(password);
}

async function deleteAccount(task: AdminTask, _options: AdminOptions, name: string): Promise<void> {
  const id = await accountId(task, name);
  await task.confirm(`Delete ${name} with all of its sandboxes, snapshots, keys and logs?`);
  const answer = await task.client.admin.accounts.delete(id);
  const { deleted_sandboxes, deleted_snapshots } = answer;
  task.out.show(answer, () => task.out.text(`${name} is deleted, with ${deleted_sandboxes} sandboxes and ${deleted_snapshots} snapshots.`));
}

function printAccount(out: Output, account: AdminAccount): void {
  out.pairs([
    ["Account", account.id],
    ["E-mail", account.email],
    ["Name", account.name],
    ["Tier", account.tier],
    ["Limits of a key", limitsText(account.limits, account.custom_limits)],
    ["Isolation", account.isolation],
    ["Status", statusOf(account) || "active"],
    ["Created", account.created_at],
    ["Active keys", account.keys],
    ["Sandboxes", account.sandboxes],
  ]);
}

const withRights = (command: Command): Command =>
  command
    .option("--isolation <least>", "what its new sandboxes get at least: standard or strong", isolation)
    .option("--operator", "allow it to use these commands");

export function addAccountCommands(admin: Command): void {
  admin
    .command("accounts")
    .description("list all accounts, or those with --email PART in their address")
    .option("--email <part>", "only those with this text in their address")
    .action(doing(list));
  admin.command("account <ACCOUNT>").description("show one account with its keys").action(doing(show));
  withRights(withLimits(admin.command("create-account <EMAIL>").description("create an account and print its password, also where sign-up is closed")))
    .option("--name <name>", "its name (default: what stands before the @)")
    .action(doing(create));
  withRights(withLimitChange(admin.command("set <ACCOUNT>").description("change its tier, limits, isolation or operator rights"), "tier"))
    .option("--no-operator", "no longer allow that")
    .action(doing(set));
  admin.command("suspend <ACCOUNT>").description("refuse all its calls, immediately and everywhere").action(doing(suspend));
  admin
    .command("resume <ACCOUNT>")
    .description("reactivate a suspended account")
    .action(doing((task, _options, name: string) => setSuspended(task, name, false)));
  admin.command("password <ACCOUNT>").description("give it a new password, which is printed, and log its browsers out").action(doing(resetPassword));
  admin.command("delete-account <ACCOUNT>").description("delete it with its sandboxes, snapshots, keys and logs").action(doing(deleteAccount));
}
