/** A CPU group (cgroup v1) for the account's sandboxes, where systemd does not hand CPU limits to it. */
import { stat } from "node:fs/promises";
import { cpuGroupOf } from "../../shared/util/cpu-group.ts";
import type { Account } from "../base/instance.ts";
import { CommandError } from "../base/run.ts";
import type { Administrator } from "./administrator.ts";

/**
 * Makes the group where that asks nobody for a password. Without it sandboxes run all the same, with no limit of CPU but
 * their lower priority; the host table says so.
 */
export async function offerCpuGroup({ uid, gid }: Account, administrator: Administrator): Promise<void> {
  const group = cpuGroupOf(uid);
  if (group === undefined || (await isOwnedBy(group, uid)) || !(await administrator.silent())) return;
  // The folder alone: the account makes groups in it, and cannot change what all of them have together.
  const make = ["install", "-d", "-m", "0755", "-o", String(uid), "-g", String(gid), group];
  await administrator.run(`limit the CPU of sandboxes (${group})`, make).catch((error: unknown) => {
    // In many containers these file systems are read-only, for root as well.
    if (!(error instanceof CommandError)) throw error;
  });
}

async function isOwnedBy(path: string, uid: number): Promise<boolean> {
  const found = await stat(path).catch(() => undefined);
  return found?.uid === uid;
}
