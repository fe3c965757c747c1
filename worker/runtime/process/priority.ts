/** How programs give way to each other, and which of them the kernel ends first. */
import { setPriority } from "node:os";

/**
 * When the machine is out of memory, the kernel ends processes of sandboxes before any other, the largest first.
 * Runtimes give this to the first process only: commands have it from whoever starts them.
 */
export const oomScoreAdj = 1_000;

/**
 * Everything in sandboxes, and bulk work that nobody waits for, gives way to calls: their commands have it from whoever starts
 * them, and a program can make its own value higher, but not lower again.
 */
export const lowPriority = 10;

/** Gives a process low priority that somebody else has started; one that is gone needs none. */
export function giveWay(pid: number): void {
  try {
    setPriority(pid, lowPriority);
  } catch {
    // It has gone.
  }
}
