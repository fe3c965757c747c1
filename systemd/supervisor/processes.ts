/** Identifies processes by id and start time, because the kernel reuses ids. */
import { readFileSync } from "node:fs";
import { attempt } from "../../shared/util/attempt.ts";
import { statOf } from "../../shared/util/proc.ts";

/** A process, identified even after its id is reused. */
export interface ProcessId {
  readonly pid: number;
  /** Clock ticks between boot and start; field 22 of /proc/PID/stat (proc(5)). */
  readonly startTicks: string;
  readonly bootId: string;
}

/** Longest part of a command line in a message. */
const commandCharacters = 120;

/** Identifies a running process; undefined if it has ended (a zombie has ended). */
export function identify(pid: number): ProcessId | undefined {
  const fields = statOf(pid);
  const [state, startTicks] = [fields?.[0], fields?.[19]];
  if (state === "Z" || state === "X" || startTicks === undefined) return undefined;
  return { pid, startTicks, bootId: readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim() };
}

export function isRunning(process: ProcessId): boolean {
  const found = identify(process.pid);
  return found !== undefined && found.startTicks === process.startTicks && found.bootId === process.bootId;
}

/** Parses the record of a process. */
export function parseProcessId(text: string): ProcessId | undefined {
  const { pid, startTicks, bootId } = attempt(() => JSON.parse(text) as Partial<ProcessId>) ?? {};
  return pid !== undefined && startTicks !== undefined && bootId !== undefined ? { pid, startTicks, bootId } : undefined;
}

/** Describes a running process by its id and, if readable, its command line. */
export function describeProcess(pid: number): string {
  const command = attempt(() => readFileSync(`/proc/${pid}/cmdline`, "utf8"))
    ?.replaceAll("\0", " ")
    .trim();
  return command ? `process ${pid} (${command.slice(0, commandCharacters)})` : `process ${pid}`;
}

/** Sends a signal, unless the process has ended or another one has its id now. */
export function signalProcess(target: ProcessId, signal: NodeJS.Signals): void {
  if (!isRunning(target)) return;
  try {
    process.kill(target.pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}
