/** workers, drain, forget. */
import type { Command, Session } from "../command.ts";
import { gibibytes, type Row } from "../output.ts";

interface Gone {
  readonly id: string;
  readonly present: false;
  readonly sandboxes: number;
}

interface Present {
  readonly id: string;
  readonly present: true;
  readonly draining: boolean;
  readonly cordoned: boolean;
  readonly sandboxes: number;
  readonly sandboxes_max: number;
  readonly memory_free_bytes: number;
  readonly disk_free_bytes: number;
  readonly load_per_cpu: number;
  readonly not_enforced: readonly string[];
}

const pathOf = (id: string): string => `/v1/admin/workers/${encodeURIComponent(id)}`;

async function list({ client, out }: Session): Promise<void> {
  const answer = await client.call<{ data: readonly (Present | Gone)[] }>("GET", "/v1/admin/workers");
  const titles = ["ID", "STATUS", "SANDBOXES", "FREE MEMORY", "FREE DISK", "LOAD/CPU", "NOT ENFORCED"];
  out.show(answer, () => out.table(titles, answer.data.map(rowOf), "No workers."));
}

function rowOf(worker: Present | Gone): Row {
  if (!worker.present) return { cells: [worker.id, "gone", worker.sandboxes, null, null, null, null], style: "red" };
  const { id, draining, cordoned, sandboxes, sandboxes_max, memory_free_bytes, disk_free_bytes, load_per_cpu, not_enforced } = worker;
  const status = draining ? "stopping" : cordoned ? "drained" : "up";
  const free = [gibibytes(memory_free_bytes), gibibytes(disk_free_bytes), load_per_cpu.toFixed(2)];
  const cells = [id, status, `${sandboxes} of ${sandboxes_max}`, ...free, not_enforced.join(", ") || "-"];
  return { cells, style: status === "up" ? undefined : "yellow" };
}

async function drain({ client, out, values, operands: [id = ""] }: Session): Promise<void> {
  const answer = await client.call<{ message: string }>("POST", `${pathOf(id)}/drain`, { on: !values.undo });
  out.show(answer, () => out.say(`${id}: ${answer.message}.`));
}

async function forget(session: Session): Promise<void> {
  const { client, out, operands } = session;
  const [id = ""] = operands;
  await session.confirm(`Forget ${id} and all of its sandboxes?`);
  const answer = await client.call<{ forgotten_sandboxes: number }>("DELETE", pathOf(id));
  out.show(answer, () => out.say(`${id} is forgotten; sandboxes taken out of the directory: ${answer.forgotten_sandboxes}.`));
}

const one = { min: 1, max: 1 } as const;

export const workerCommands: readonly Command[] = [
  { name: "workers", takes: "", about: "list the workers, also those that are gone but still have sandboxes", options: [], min: 0, max: 0, run: list },
  { name: "drain", takes: "WORKER", about: "give a worker no new sandboxes; --undo takes that back", options: ["undo"], ...one, run: drain },
  { name: "forget", takes: "WORKER", about: "drop a worker that will never come back, with its sandboxes", options: [], ...one, run: forget },
];
