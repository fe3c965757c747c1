/** sandboxes, delete. */
import type { Command, Session } from "../command.ts";
import { ago } from "../output.ts";
import { accountId } from "./accounts.ts";
import { forEach } from "./for-each.ts";

interface SandboxView {
  readonly id: string;
  readonly name: string;
  readonly status: string;
  readonly image: string;
  readonly created_at: string;
  readonly cpu: number;
  readonly memory: number;
  readonly account_id: string;
  readonly worker_id: string;
  readonly error: string | null;
}

async function list({ client, out, values }: Session): Promise<void> {
  const account_id = values.account === undefined ? undefined : await accountId(client, values.account);
  const answer = await client.all<SandboxView>("/v1/admin/sandboxes", { account_id, worker_id: values.worker });
  const titles = ["ID", "NAME", "STATUS", "ACCOUNT", "WORKER", "IMAGE", "CPUS", "MIB", "CREATED", "ERROR"];
  const rows = answer.data.map(({ id, name, status, account_id, worker_id, image, cpu, memory, created_at, error }) => ({
    cells: [id, name, status, account_id, worker_id, image, cpu, memory, ago(created_at), error ?? ""],
    style: status === "error" ? ("red" as const) : undefined,
  }));
  out.show(answer, () => out.table(titles, rows, "No sandboxes."));
}

async function remove(session: Session): Promise<void> {
  const { operands, client } = session;
  await session.confirm(`Delete ${operands.length === 1 ? operands[0] : `${operands.length} sandboxes`} with all files?`);
  await forEach(session, (id) => client.call("DELETE", `/v1/admin/sandboxes/${encodeURIComponent(id)}`), "deleted");
}

export const sandboxCommands: readonly Command[] = [
  {
    name: "sandboxes",
    takes: "",
    about: "list all sandboxes, or those of one --account or --worker",
    options: ["account", "worker"],
    min: 0,
    max: 0,
    run: list,
  },
  { name: "delete", takes: "SANDBOX…", about: "end sandboxes and remove their files", options: [], min: 1, max: Number.POSITIVE_INFINITY, run: remove },
];
