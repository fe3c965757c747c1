/** The CPU time of processes. */
import { statOf } from "../shared/util/proc.ts";

/** The kernel counts in hundredths of a second, on every architecture that Node.js runs on. */
const msPerTick = 10;

/** What a process with all its threads has used so far, in milliseconds. @throws {Error} when it is gone */
export function cpuMsOf(pid: number): number {
  const fields = statOf(pid);
  if (!fields) throw new Error(`process ${pid} is gone`);
  const [user, system] = fields.slice(11, 13);
  return (Number(user) + Number(system)) * msPerTick;
}
