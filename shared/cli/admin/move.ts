/** drain --move: empties a worker. */
import type { AdminSandbox } from "../../client/types.ts";
import { until } from "../../waiting.ts";
import { CliError, textOf } from "../failures.ts";
import type { AdminTask } from "./task.ts";

/** Others may still have been on their way to the worker when it was cordoned. */
const passesMax = 3;
/** Those that are being made are waited for. */
const making = { pollMs: 500, timeoutMs: 60_000 };

/** What became of one sandbox; printed as one line. */
interface Outcome {
  readonly id: string;
  readonly name: string;
  readonly account_id: string;
  readonly moved: boolean;
  readonly to?: string;
  readonly ended_commands?: number;
  readonly ended_sessions?: number;
  readonly memory_restored?: boolean;
  readonly memory_reason?: string | null;
  readonly error?: string;
}

/** Moves all sandboxes of a cordoned worker to others, one after the other. @throws {CliError} if any has stayed */
export async function moveAll({ client, out }: AdminTask, workerId: string): Promise<void> {
  const outcomes = new Map<string, Outcome>();
  const left = async (): Promise<AdminSandbox[]> => {
    const all = await client.admin.sandboxes.list({ worker_id: workerId }).all();
    return all.filter(({ id, status }) => status !== "deleting" && outcomes.get(id)?.moved !== false);
  };
  const made = async (): Promise<AdminSandbox[]> => {
    await until(async () => (await left()).every(({ status }) => status !== "creating"), making);
    return left();
  };
  let sandboxes = await made();
  for (let pass = 0; pass < passesMax && sandboxes.length > 0; pass++) {
    for (const sandbox of sandboxes) {
      const outcome = await moved(client, sandbox);
      outcomes.set(sandbox.id, outcome);
      if (out.isJson) out.line(JSON.stringify(outcome));
      else out.text(lineOf(outcome));
    }
    sandboxes = await made();
  }
  const stayed = [...outcomes.values()].filter((outcome) => !outcome.moved).length + sandboxes.length;
  if (stayed > 0) throw new CliError(`${stayed} ${stayed === 1 ? "sandbox has" : "sandboxes have"} stayed on ${workerId}`);
  if (!out.isJson) out.text(`${workerId} is empty; moved: ${outcomes.size}.`);
}

async function moved(client: AdminTask["client"], { id, name, account_id }: AdminSandbox): Promise<Outcome> {
  try {
    const { to, message: _message, from: _from, ...rest } = await client.admin.sandboxes.move(id);
    return { ...rest, id, name, account_id, moved: true, to };
  } catch (error) {
    return { id, name, account_id, moved: false, error: textOf(error) };
  }
}

function lineOf({ id, name, to, ended_commands = 0, ended_sessions = 0, memory_restored, memory_reason, error }: Outcome): string {
  if (error !== undefined) return `${id} (${name}) stays: ${error}`;
  const ended = ended_commands + ended_sessions > 0 ? `; ended: ${ended_commands} commands, ${ended_sessions} sessions` : "";
  const processes = memory_restored ? " with its processes" : ` with its files${memory_reason ? ` (${memory_reason})` : ""}`;
  return `${id} (${name}) is on ${to}${processes}${ended}`;
}
