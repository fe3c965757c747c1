/** workers, drain, forget. */
import type { Command } from "commander";
import type { WorkerInfo } from "../../client/types.ts";
import { bytesText, type Row } from "../output.ts";
import { type AdminOptions, type AdminTask, doing } from "./task.ts";

async function list({ client, out }: AdminTask): Promise<void> {
  const data = await client.admin.workers.list();
  const titles = ["ID", "STATUS", "SANDBOXES", "FREE MEMORY", "FREE DISK", "LOAD/CPU", "NOT ENFORCED"];
  out.show({ data }, () => out.table(titles, data.map(rowOf), "No workers."));
}

function rowOf(worker: WorkerInfo): Row {
  if (!worker.present) return { cells: [worker.id, "gone", worker.sandboxes, null, null, null, null], style: "red" };
  const { id, draining, cordoned, sandboxes, sandboxes_max, memory_free_bytes, disk_free_bytes, load_per_cpu, not_enforced } = worker;
  const status = draining ? "stopping" : cordoned ? "drained" : "up";
  const free = [bytesText(memory_free_bytes), bytesText(disk_free_bytes), load_per_cpu.toFixed(2)];
  const cells = [id, status, `${sandboxes} of ${sandboxes_max}`, ...free, not_enforced.join(", ") || "-"];
  return { cells, style: status === "up" ? undefined : "yellow" };
}

async function drain({ client, out }: AdminTask, { undo }: AdminOptions & { undo?: true }, id: string): Promise<void> {
  const answer = await client.admin.workers.drain(id, { on: !undo });
  out.show(answer, () => out.text(`${id}: ${answer.message}.`));
}

async function forget({ client, out, confirm }: AdminTask, _options: AdminOptions, id: string): Promise<void> {
  await confirm(`Forget ${id} and all of its sandboxes?`);
  const answer = await client.admin.workers.forget(id);
  out.show(answer, () => out.text(`${id} is forgotten; sandboxes removed from the directory: ${answer.forgotten_sandboxes}.`));
}

export function addWorkerCommands(admin: Command): void {
  admin.command("workers").description("list the workers, including those that are gone but still have sandboxes").action(doing(list));
  admin
    .command("drain <WORKER>")
    .description("stop placing new sandboxes on a worker; --undo reverts that")
    .option("--undo", "place new sandboxes on it again")
    .action(doing(drain));
  admin.command("forget <WORKER>").description("drop a worker that will never come back, with its sandboxes").action(doing(forget));
}
