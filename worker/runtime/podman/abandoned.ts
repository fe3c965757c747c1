/** Podman's service and commands that an earlier process of this worker started and that outlived it. */

import { settings } from "../../../shared/config.ts";
import { attempt } from "../../../shared/util/attempt.ts";
import { processIds } from "../../../shared/util/proc.ts";
import { until } from "../../../shared/waiting.ts";
import { commandLineOf, environmentOf } from "../process/proc.ts";
import { killNow } from "../process/program.ts";

const waitMsMax = 30_000;
const pollMs = 20;

/**
 * Resolves when none of them runs. They are waited for, because one killed halfway leaves processes and networks unknown to
 * Podman, and one still running while records are reconciled would create unexpected containers. The service ends when asked,
 * after what it has begun.
 *
 * @returns how many did not end by themselves and were killed: they hung, or were pulling an image.
 */
export async function untilAbandonedEnd(workerId: string): Promise<number> {
  for (const { pid } of abandoned(workerId).filter(({ isService }) => isService)) attempt(() => process.kill(pid, "SIGTERM"));
  await until(() => abandoned(workerId).every(({ isPull }) => isPull), { timeoutMs: waitMsMax, pollMs });
  const hung = abandoned(workerId);
  for (const { pid } of hung) killNow(pid);
  return hung.length;
}

interface Program {
  readonly pid: number;
  readonly isPull: boolean;
  readonly isService: boolean;
}

/** Recognized by the mark of `markPrograms`. */
function abandoned(workerId: string): Program[] {
  const wanted = `${settings.workerId.name}=${workerId}`;
  return processIds().flatMap((pid) => {
    const [program = "", verb] = commandLineOf(pid);
    return /(^|\/)podman$/.test(program) && environmentOf(pid).includes(wanted) ? [{ pid, isPull: verb === "pull", isService: verb === "system" }] : [];
  });
}
