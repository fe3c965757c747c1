/** The CPU time of processes. */
import { readFileSync } from "node:fs";

/** The kernel counts in hundredths of a second, on every architecture that Node.js runs on. */
const msPerTick = 10;

/** What a process with all its threads has used so far, in milliseconds. @throws {Error} when it is gone */
export function cpuMsOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const [user, system] = stat
    .slice(stat.lastIndexOf(")") + 2)
    .split(" ")
    .slice(11, 13);
  return (Number(user) + Number(system)) * msPerTick;
}
