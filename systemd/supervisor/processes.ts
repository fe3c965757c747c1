/** Processes told apart by what a reused process id cannot fake: when they were started, counted from boot. */
import { readFileSync } from "node:fs";

/** A process, for longer than its id is valid. */
export interface ProcessId {
  readonly pid: number;
  /** Clock ticks between boot and start; field 22 of /proc/PID/stat (proc(5)). */
  readonly startTicks: string;
  readonly bootId: string;
}

/** Identifies a running process, or returns nothing when it is gone (a zombie is gone). */
export function identify(pid: number): ProcessId | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The second field is the program's name in parentheses and may hold anything.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const [state, startTicks] = [fields[0], fields[19]];
    if (state === "Z" || state === "X" || startTicks === undefined) return undefined;
    return { pid, startTicks, bootId: readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim() };
  } catch {
    return undefined;
  }
}

export function isRunning(process: ProcessId): boolean {
  const found = identify(process.pid);
  return found !== undefined && found.startTicks === process.startTicks && found.bootId === process.bootId;
}

/** Sends a signal unless the process is gone, possibly replaced by another with its id. */
export function signalProcess(target: ProcessId, signal: NodeJS.Signals): void {
  if (!isRunning(target)) return;
  try {
    process.kill(target.pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}
