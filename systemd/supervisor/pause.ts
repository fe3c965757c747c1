/** Podman's pause process, which keeps the account's namespace open between commands. */
import { readdirSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Instance } from "../instance.ts";
import { readIfThere } from "../write-file.ts";
import { identify, signalProcess } from "./processes.ts";

/** Podman cleans up after a container that has ended, in a process of its own. */
const settleMs = 3_000;

/** Ends the pause process of this installation unless something, such as a container, lives in its namespace. */
export async function endUnusedPause({ runtimeDir }: Instance): Promise<void> {
  const pid = Number(await readIfThere(join(runtimeDir, "libpod/tmp/pause.pid")).catch(() => undefined));
  const pause = Number.isInteger(pid) && pid > 1 ? identify(pid) : undefined;
  const namespace = pause && namespaceOf(pid);
  // Our own namespace would mean that the number has been given to another process since.
  if (!pause || !namespace || namespace === namespaceOf("self")) return;
  const deadline = Date.now() + settleMs;
  while (isShared(namespace, pid)) {
    if (Date.now() > deadline) return;
    await sleep(100);
  }
  signalProcess(pause, "SIGKILL");
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
