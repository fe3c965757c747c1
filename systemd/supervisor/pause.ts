/** Podman's pause process, which keeps the account's namespace open between commands. */
import { readdirSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { until } from "../../shared/waiting.ts";
import { asAccount, readAsAccount } from "../base/as-account.ts";
import type { Instance } from "../base/instance.ts";
import { succeeds } from "../base/run.ts";
import { identify, isRunning } from "./processes.ts";

/** Podman cleans up after a container that has ended, in a process of its own. */
const settleMs = 3_000;
const timeoutMs = 10_000;

/**
 * Ends the pause process of this installation unless something, such as a container, lives in its namespace. Its number is read
 * and it is signalled as the account, which may have written any number, or have put anything else in the file's place.
 */
export async function endUnusedPause({ account, runtimeDir }: Instance): Promise<void> {
  const file = join(runtimeDir, "libpod/tmp/pause.pid");
  const pid = Number(await readAsAccount(account, file, 16));
  const pause = Number.isInteger(pid) && pid > 1 ? identify(pid) : undefined;
  const namespace = pause && namespaceOf(pid);
  // Our own namespace would mean that the number has been given to another process since.
  if (!pause || !namespace || namespace === namespaceOf("self")) return;
  const isUnused = await until(() => !isShared(namespace, pid), { timeoutMs: settleMs, pollMs: 100 });
  if (isUnused && isRunning(pause)) await succeeds(asAccount(account, ["sh", "-c", `kill -s KILL ${pid}`]), { cwd: "/", timeoutMs });
}

function isShared(namespace: string, pid: number): boolean {
  const others = readdirSync("/proc").filter((entry) => /^\d+$/.test(entry) && Number(entry) !== pid);
  return others.some((other) => namespaceOf(other) === namespace && identify(Number(other)));
}

function namespaceOf(pid: number | string): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/ns/user`);
  } catch {
    return undefined;
  }
}
