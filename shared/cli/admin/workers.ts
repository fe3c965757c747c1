/** workers, drain, forget. */
import type { Command } from "commander";
import type { WorkerInfo } from "../../client/types.ts";
import { UsageError } from "../failures.ts";
import { bytesText, type Row } from "../output.ts";
import { moveAll } from "./move.ts";
import { type AdminOptions, type AdminTask, doing } from "./task.ts";

async function list({ client, out }: AdminTask): Promise<void> {
  const data = await client.admin.workers.list();
  const titles = ["ID", "STATUS", "SANDBOXES", "FREE MEMORY", "FREE DISK", "LOAD/CPU", "LACKS"];
  out.show({ data }, () => out.table(titles, data.map(rowOf), "No workers."));
}

function rowOf(worker: WorkerInfo): Row {
  if (!worker.present) return { cells: [worker.id, "gone", worker.sandboxes, null, null, null, null], style: "red" };
  const { id, draining, cordoned, sandboxes, sandboxes_max, memory_free_bytes, disk_free_bytes, load_per_cpu, lacks } = worker;
  const status = draining ? "stopping" : cordoned ? "drained" : "up";
  const free = [bytesText(memory_free_bytes), bytesText(disk_free_bytes), load_per_cpu.toFixed(2)];
  const cells = [id, status, `${sandboxes} of ${sandboxes_max}`, ...free, lacks.join(", ") || "-"];
  return { cells, style: status === "up" ? undefined : "yellow" };
}

interface DrainOptions extends AdminOptions {
  readonly undo?: true;
  readonly move?: true;
}

async function drain(task: AdminTask, { undo, move }: DrainOptions, id: string): Promise<void> {
  const { client, out } = task;
  if (undo && move) throw new UsageError("--undo and --move contradict each other");
  const answer = await client.admin.workers.drain(id, { on: !undo });
  // With --move, every line is about one sandbox.
  if (!move || !out.isJson) out.show(answer, () => out.text(`${id}: ${answer.message}.`));
  if (move) await moveAll(task, id);
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
    .description("stop placing new sandboxes on a worker; --undo reverts that, --move empties it")
    .option("--undo", "place new sandboxes on it again")
    .option("--move", "move its sandboxes to other workers, one after the other; fails if any stays")
    .action(doing(drain));
  admin.command("forget <WORKER>").description("drop a worker that will never come back, with its sandboxes").action(doing(forget));
}
