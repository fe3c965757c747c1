/** sandboxes, delete. */
import type { Command } from "commander";
import { ago } from "../output.ts";
import { type AdminOptions, type AdminTask, accountId, doing, forEachId } from "./task.ts";

async function list(task: AdminTask, { account, worker }: AdminOptions & { account?: string; worker?: string }): Promise<void> {
  const { client, out } = task;
  const account_id = account === undefined ? undefined : await accountId(task, account);
  const data = await client.admin.sandboxes.list({ account_id, worker_id: worker }).all();
  const titles = ["ID", "NAME", "STATUS", "ACCOUNT", "WORKER", "IMAGE", "CPUS", "MIB", "CREATED", "ERROR"];
  const rows = data.map(({ id, name, status, account_id, worker_id, image, cpu, memory, created_at, error }) => ({
    cells: [id, name, status, account_id, worker_id, image, cpu, memory, ago(created_at), error ?? ""],
    style: status === "error" ? ("red" as const) : undefined,
  }));
  out.list(data, () => out.table(titles, rows, "No sandboxes."));
}

async function remove(task: AdminTask, _options: AdminOptions, ids: string[]): Promise<void> {
  await task.confirm(`Delete ${ids.length === 1 ? ids[0] : `${ids.length} sandboxes`} with all their files?`);
  await forEachId(task, ids, (id) => task.client.admin.sandboxes.delete(id), "deleted");
}

export function addSandboxCommands(admin: Command): void {
  admin
    .command("sandboxes")
    .description("list all sandboxes, or those of one --account or --worker")
    .option("--account <account>", "only those of this account")
    .option("--worker <worker>", "only those on this worker")
    .action(doing(list));
  admin.command("delete <SANDBOX...>").description("delete sandboxes with their files").action(doing(remove));
}
