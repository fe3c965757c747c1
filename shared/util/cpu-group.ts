/** The cgroup v1 CPU group that holds one group per sandbox: created by the set-up, used by the worker. */
import { readFileSync } from "node:fs";
import { join } from "node:path";

/**
 * The path of the user's CPU group, whether it exists or not; undefined on a host without the CPU controller of cgroup v1. It
 * is not below the group of the process that starts the product, because that may be a login session that ends earlier.
 */
export function cpuGroupOf(uid: number | string, mounts = readFileSync("/proc/self/mounts", "utf8")): string | undefined {
  for (const line of mounts.split("\n")) {
    const [, dir, type, options = ""] = line.split(" ");
    if (dir && type === "cgroup" && options.split(",").includes("cpu")) return join(dir, `sandgate-${uid}`);
  }
  return undefined;
}
