/** Unmounts the volume of an installation, after which the kernel gives up its loop device by itself. */
import { until } from "../../shared/waiting.ts";
import { succeeds } from "../base/run.ts";
import { mountAt } from "./mounts.ts";

/** Time for what ended just now to let go of its files. */
const settleMs = 3_000;
const timeoutMs = 60_000;

/** @returns whether nothing is mounted there any more; what somebody still uses stays for the next start. */
export async function unmount(dir: string): Promise<boolean> {
  const command = [...(process.getuid?.() === 0 ? [] : ["sudo", "-n", "--"]), "umount", dir];
  const isGone = async (): Promise<boolean> => mountAt(dir) === undefined || (await succeeds(command, { cwd: "/", timeoutMs }));
  return until(isGone, { timeoutMs: settleMs, pollMs: 100 });
}
