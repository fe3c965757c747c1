/**
 * What a sandbox with ids of its own may take of what the kernel counts by user. It counts for the users of each sandbox, and
 * again for the worker's user, who has made their namespaces. So each gets a part, and what one takes leaves enough for others.
 */
import { readFileSync } from "node:fs";
import { hardLimit } from "../host/kernel.ts";

const parts = 4;

/** By their names in /proc/sys/user, those that the machine has for a user. */
const bounded = { max_inotify_instances: "max_user_instances", max_inotify_watches: "max_user_watches" };

/** How many signals of a command may wait. */
export const pendingSignalsMax = (): number => Math.floor(hardLimit("Max pending signals") / parts);

/**
 * The same for the OCI runtime. As a limit of the container it would also be one of all sandboxes together: the kernel remembers
 * what limits a user namespace was made with.
 */
export function signalsLimit(): object {
  const count = pendingSignalsMax();
  return { type: "RLIMIT_SIGPENDING", soft: count, hard: count };
}

/** The limits of a user namespace, by the files that only a process in it can write. */
export const userLimits = (): Record<string, string> =>
  Object.fromEntries(
    Object.entries(bounded).map(([name, host]) => [
      `/proc/sys/user/${name}`,
      String(Math.floor(Number(readFileSync(`/proc/sys/fs/inotify/${host}`, "utf8")) / parts)),
    ]),
  );
