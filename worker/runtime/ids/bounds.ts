/**
 * What a sandbox with ids of its own may take of what the kernel counts by user. It counts for the users of each sandbox, and
 * again for the worker's user, who has made their namespaces. So each gets a part, and what one takes leaves enough for others.
 */
import { readFileSync } from "node:fs";
import { hardLimit } from "../host/kernel.ts";
import { writeAsRootOf } from "../process/namespaces.ts";
import { programFailure, run } from "../process/run.ts";

const timeoutMs = 10_000;
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

/** Sets the limits of the user namespace of a process, which only a process in it can do. @throws {SandgateError} `internal_error`, `unavailable` */
export async function boundUser(pid: number): Promise<void> {
  const values = Object.entries(bounded).map(([name, host]) => [
    `/proc/sys/user/${name}`,
    String(Math.floor(Number(readFileSync(`/proc/sys/fs/inotify/${host}`, "utf8")) / parts)),
  ]);
  const [file = "", ...args] = writeAsRootOf(pid, Object.fromEntries(values));
  const result = await run(file, args, { timeoutMs });
  if (result.exitCode !== 0) throw programFailure("the sandbox could not be given limits of its own", result);
}
