/** Cgroups: which controllers this user may delegate to containers. */
import { accessSync, constants, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { hostUserId } from "../process/proc.ts";

/** Exists where cgroup v2 is the only version in use. */
const cgroupV2Mark = "/sys/fs/cgroup/cgroup.controllers";

export const cgroupVersion = (): "v1" | "v2" => (existsSync(cgroupV2Mark) ? "v2" : "v1");

/** Cgroup v2 controllers that this user may delegate to containers; none on v1 and hybrid hosts. */
export function delegatedControllers(): string[] {
  try {
    const own =
      readFileSync("/proc/self/cgroup", "utf8")
        .split("\n")
        .find((line) => line.startsWith("0::"))
        ?.slice(3)
        .trim() ?? "";
    if (!existsSync(cgroupV2Mark)) return [];
    // This user's slice is the topmost group we own; its controllers are those that a container can get.
    const steps = own.split("/").filter(Boolean);
    for (let length = 1; length <= steps.length; length++) {
      const dir = join("/sys/fs/cgroup", ...steps.slice(0, length));
      if (isWritable(join(dir, "cgroup.procs"))) return readFileSync(join(dir, "cgroup.controllers"), "utf8").trim().split(/\s+/);
    }
  } catch {
    // No cgroup v2: nothing is delegated.
  }
  return userManagerControllers();
}

/** A worker outside a login session still gets its containers' cgroups from the user's systemd manager. */
function userManagerControllers(): string[] {
  try {
    const uid = hostUserId();
    return readFileSync(`/sys/fs/cgroup/user.slice/user-${uid}.slice/user@${uid}.service/cgroup.controllers`, "utf8").trim().split(/\s+/);
  } catch {
    return [];
  }
}

/** Whether this user may write to a file of a group, if there is one. */
export function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
