/** Unmounts the volume of an installation, after which the kernel gives up its loop device by itself. */
import { mountAt } from "../../shared/util/mounts.ts";
import { until } from "../../shared/waiting.ts";
import { succeeds } from "../base/run.ts";

/** Time for what ended just now to let go of its files. */
const settleMs = 3_000;
const timeoutMs = 60_000;

/**
 * Other programs may have mount namespaces that began as copies of ours, with the volume in them. With its folder, the kernel
 * unmounts it in all of them.
 *
 * @returns whether nothing is mounted there any more; what somebody still uses stays for the next start.
 */
export async function unmount(dir: string): Promise<boolean> {
  const asRoot = (...argv: string[]): Promise<boolean> =>
    succeeds([...(process.getuid?.() === 0 ? [] : ["sudo", "-n", "--"]), ...argv], { cwd: "/", timeoutMs });
  const isGone = async (): Promise<boolean> => mountAt(dir) === undefined || (await asRoot("umount", dir));
  if (!(await until(isGone, { timeoutMs: settleMs, pollMs: 100 }))) return false;
  if (await asRoot("rmdir", dir)) await asRoot("install", "-d", "-m", "0700", "-o", "root", "-g", "root", dir);
  return true;
}
