/** The CPU priority of programs, and which of them the kernel kills first when memory runs out. */
import { setPriority } from "node:os";
import { attempt } from "../../../shared/util/attempt.ts";
import { threadsOf } from "./proc.ts";

/**
 * Makes the kernel kill sandbox processes before any others, largest first, when the machine is out of memory. Runtimes set
 * this for the first process only; commands inherit it from the process that starts them.
 */
export const oomScoreAdj = 1_000;

/**
 * The nice value of everything in sandboxes, and of background work, so that calls come first. Commands inherit it from the
 * process that starts them; a program can raise its own value, but never lower it again.
 */
export const lowPriority = 10;

/** Gives low priority to all threads of a process that another program has started; does nothing if it is gone. */
export function giveWay(pid: number): void {
  for (const thread of threadsOf(pid)) attempt(() => setPriority(thread, lowPriority));
}
