/** The CPU group (cgroup v1) below which the sandboxes of an account have one each: made by the set-up, used by the worker. */
import { readFileSync } from "node:fs";
import { join } from "node:path";

/**
 * Where the group of an account is, made or not; undefined on a host without the CPU controller of cgroup v1. Not below
 * the group of whoever starts the product, which may be a session that ends before it.
 */
export function cpuGroupOf(uid: number | string, mounts = readFileSync("/proc/self/mounts", "utf8")): string | undefined {
  for (const line of mounts.split("\n")) {
    const [, dir, type, options = ""] = line.split(" ");
    if (dir && type === "cgroup" && options.split(",").includes("cpu")) return join(dir, `sandgate-${uid}`);
  }
  return undefined;
}
