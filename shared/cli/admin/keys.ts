/** keys, set-key, revoke. */
import type { Command } from "commander";
import type { AdminApiKey } from "../../client/types.ts";
import { UsageError } from "../failures.ts";
import { ago, type Output } from "../output.ts";
import { type LimitOptions, limitChange, limitsText, withLimitChange } from "./limits.ts";
import { type AdminOptions, type AdminTask, accountId, doing, forEachId } from "./task.ts";

/** Prints keys as a table. */
export function keyTable(out: Output, keys: readonly AdminApiKey[]): void {
  const titles = ["ID", "KEY", "NAME", "ACCOUNT", "TIER", "REQUESTS", "SANDBOXES", "LAST USED", "CREATED", "STATUS"];
  const rows = keys.map(({ id, prefix, name, account_id, tier, limits, sandboxes, last_used_at, created_at, revoked_at }) => {
    const numbers = [`${limits.requests_per_minute}/min`, `${sandboxes} of ${limits.sandboxes}`];
    const status = revoked_at ? `revoked ${ago(revoked_at)}` : "active";
    const cells = [id, `${prefix}…`, name, account_id, tier, ...numbers, ago(last_used_at), ago(created_at), status];
    return { cells, style: revoked_at ? ("dim" as const) : undefined };
  });
  out.table(titles, rows, "No keys.");
}

async function list(task: AdminTask, { account }: AdminOptions & { account?: string }): Promise<void> {
  const { client, out } = task;
  const account_id = account === undefined ? undefined : await accountId(task, account);
  const data = await client.admin.keys.list({ account_id }).all();
  out.list(data, () => keyTable(out, data));
}

async function set({ client, out }: AdminTask, options: LimitOptions & { defaultTier?: true }, id: string): Promise<void> {
  if (options.tier !== undefined && options.defaultTier) throw new UsageError("--default-tier removes the key's own tier: use it or --tier, not both");
  const change = { ...limitChange(options), ...(options.defaultTier ? { tier: null } : {}) };
  if (Object.keys(change).length === 0) throw new UsageError("set-key requires at least one option, such as --tier pro");
  const key = await client.admin.keys.change(id, change);
  out.show(key, () => out.text(`${key.id} (${key.name}): ${key.tier}, ${limitsText(key.limits, key.custom_limits)}`));
}

async function revoke(task: AdminTask, _options: AdminOptions, ids: string[]): Promise<void> {
  await task.confirm(`Revoke ${ids.length === 1 ? ids[0] : `${ids.length} keys`}? This cannot be undone.`);
  await forEachId(task, ids, (id) => task.client.admin.keys.revoke(id), "revoked");
}

export function addKeyCommands(admin: Command): void {
  admin
    .command("keys")
    .description("list all API keys, or those of one --account")
    .option("--account <account>", "only those of this account")
    .action(doing(list));
  withLimitChange(admin.command("set-key <KEY_ID>").description("give a key its own tier or limits"), "account")
    .option("--default-tier", "use the account's tier")
    .action(doing(set));
  admin.command("revoke <KEY_ID...>").description("revoke keys permanently").action(doing(revoke));
}
