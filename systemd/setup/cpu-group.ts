/** A CPU group (cgroup v1) for the account's sandboxes, if systemd does not delegate CPU limits to it. */
import { stat } from "node:fs/promises";
import { cpuGroupOf } from "../../shared/util/cpu-group.ts";
import type { Account } from "../base/instance.ts";
import { CommandError } from "../base/run.ts";
import type { Administrator } from "./administrator.ts";

/**
 * Creates the group if that needs no password. Without it sandboxes still run, with only their lower priority and no CPU
 * limit; the host table says so.
 */
export async function offerCpuGroup({ uid, gid }: Account, administrator: Administrator): Promise<void> {
  const group = cpuGroupOf(uid);
  if (group === undefined || (await isOwnedBy(group, uid)) || !(await administrator.silent())) return;
  // Only the folder itself: the account creates groups in it, but cannot change the limits of all of them together.
  const make = ["install", "-d", "-m", "0755", "-o", String(uid), "-g", String(gid), group];
  await administrator.run(`limit the CPU of sandboxes (${group})`, make).catch((error: unknown) => {
    // In many containers these file systems are read-only, even for root.
    if (!(error instanceof CommandError)) throw error;
  });
}

async function isOwnedBy(path: string, uid: number): Promise<boolean> {
  const found = await stat(path).catch(() => undefined);
  return found?.uid === uid;
}
