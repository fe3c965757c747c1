/** Podman's pause process, which keeps the account's namespace open between commands. */
import { readdirSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import type { Instance } from "../instance.ts";
import { readIfThere } from "../write-file.ts";
import { identify, signalProcess } from "./processes.ts";

/** Ends the pause process of this installation unless something, such as a container, lives in its namespace. */
export async function endUnusedPause({ runtimeDir }: Instance): Promise<void> {
  const pid = Number(await readIfThere(join(runtimeDir, "libpod/tmp/pause.pid")).catch(() => undefined));
  const pause = Number.isInteger(pid) && pid > 1 ? identify(pid) : undefined;
  const namespace = pause && namespaceOf(pid);
  // Our own namespace would mean that the number has been given to another process since.
  if (!pause || !namespace || namespace === namespaceOf("self")) return;
  const others = readdirSync("/proc").filter((entry) => /^\d+$/.test(entry) && Number(entry) !== pid);
  if (!others.some((other) => namespaceOf(other) === namespace && identify(Number(other)))) signalProcess(pause, "SIGKILL");
}

function namespaceOf(pid: number | string): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/ns/user`);
  } catch {
    return undefined;
  }
}
