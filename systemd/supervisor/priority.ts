/** Sandboxes wait for the parts, and not the parts for sandboxes, when all want the CPU. */
import { writeFileSync } from "node:fs";
import { attempt } from "../../shared/util/attempt.ts";

/** As much as ten sandboxes that are busy. See sched(7) on autogroups. */
const niceness = "-10";

/**
 * Has the kernel prefer the session that a process leads. It is the session's and not the process's, so that it ends where
 * containers begin: each has a session of its own. Only root may do this, and kernels that share CPUs otherwise do not know it.
 */
export function prefer(pid: number): void {
  attempt(() => writeFileSync(`/proc/${pid}/autogroup`, niceness));
}
