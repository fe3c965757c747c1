/** Ends Podman's pause process, which keeps the account's namespace open between commands. */
import { readlinkSync } from "node:fs";
import { join } from "node:path";
import { attempt } from "../../shared/util/attempt.ts";
import { processIds } from "../../shared/util/proc.ts";
import { until } from "../../shared/waiting.ts";
import { asAccount, readAsAccount } from "../base/as-account.ts";
import type { Instance } from "../base/instance.ts";
import { succeeds } from "../base/run.ts";
import { identify, isRunning, type ProcessId } from "./processes.ts";

/** Time for Podman to clean up after a container that has ended, which it does in a separate process. */
const settleMs = 3_000;
const timeoutMs = 10_000;

/**
 * Ends the pause process of this installation unless something else, such as a container, runs in its namespace. The pid file is
 * read, and the signal sent, as the account: it may have written any number, or replaced the file with anything.
 */
export async function endUnusedPause(instance: Instance): Promise<void> {
  const pause = await findPause(instance);
  const namespace = pause && namespaceOf(pause.pid);
  if (!pause || !namespace) return;
  const { pid } = pause;
  const isUnused = await until(() => !isShared(namespace, pid), { timeoutMs: settleMs, pollMs: 100 });
  if (isUnused && isRunning(pause)) await succeeds(asAccount(instance.account, ["sh", "-c", `kill -s KILL ${pid}`]), { cwd: "/", timeoutMs });
}

/** The process whose id the account has written down as that of its pause process. */
export async function findPause({ account, runtimeDir }: Instance): Promise<ProcessId | undefined> {
  const file = join(runtimeDir, "libpod/tmp/pause.pid");
  const pid = Number(await readAsAccount(account, file, 16));
  const pause = Number.isInteger(pid) && pid > 1 ? identify(pid) : undefined;
  const namespace = pause && namespaceOf(pid);
  // If it is in our own namespace, the process id has been reused since.
  return namespace && namespace !== namespaceOf("self") ? pause : undefined;
}

function isShared(namespace: string, pid: number): boolean {
  return processIds().some((other) => other !== pid && namespaceOf(other) === namespace && identify(other));
}

const namespaceOf = (pid: number | "self"): string | undefined => attempt(() => readlinkSync(`/proc/${pid}/ns/user`));
