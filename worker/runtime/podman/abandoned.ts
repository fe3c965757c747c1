/** Podman commands that an earlier process of this worker started and that go on after its end. */

import { settings } from "../../../shared/config.ts";
import { until } from "../../../shared/waiting.ts";
import { commandLineOf, environmentOf, processIds } from "../process/proc.ts";

const waitMsMax = 30_000;
const pollMs = 20;

/**
 * Resolves when none of them runs. They are waited for, because one that is ended half-way leaves processes and networks
 * that Podman does not know of; and one that still runs while records are compared would make what nobody expects.
 *
 * @returns how many did not end by themselves and were killed: they hung, or fetched an image.
 */
export async function untilAbandonedEnd(workerId: string): Promise<number> {
  await until(() => abandoned(workerId).every(({ isPull }) => isPull), { timeoutMs: waitMsMax, pollMs });
  return kill(abandoned(workerId));
}

interface Program {
  readonly pid: number;
  readonly isPull: boolean;
}

/** They are known by `markPrograms`. */
function abandoned(workerId: string): Program[] {
  const wanted = `${settings.workerId.name}=${workerId}`;
  return processIds().flatMap((pid) => {
    const [program = "", verb] = commandLineOf(pid);
    return /(^|\/)podman$/.test(program) && environmentOf(pid).includes(wanted) ? [{ pid, isPull: verb === "pull" }] : [];
  });
}

function kill(programs: readonly Program[]): number {
  for (const { pid } of programs) {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // It has just ended.
    }
  }
  return programs.length;
}
