/**
 * The system calls that sandboxes may use: Podman's own list, less what makes namespaces. In a user namespace of
 * its own a sandbox would have every capability, and processes in another pid namespace would not count as its own.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const defaultProfiles = ["/etc/containers/seccomp.json", "/usr/share/containers/seccomp.json"];

/** CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET of linux/sched.h. */
const namespaceFlags = [0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000];
const enosys = 38;
const closed = [
  "clone",
  "clone3",
  "unshare",
  "setns",
  "mount",
  "umount",
  "umount2",
  "pivot_root",
  "move_mount",
  "open_tree",
  "fsopen",
  "fsmount",
  "fspick",
  "fsconfig",
  "mount_setattr",
];

interface Rule {
  readonly names: readonly string[];
  readonly action: string;
  readonly [field: string]: unknown;
}

interface Profile {
  readonly syscalls: readonly Rule[];
  readonly [field: string]: unknown;
}

/** Podman's profile with the calls that make namespaces and mounts taken out. */
export function withoutNamespaces(profile: Profile): Profile {
  const rest = profile.syscalls
    .map((rule) => ({ ...rule, names: rule.names.filter((name) => !closed.includes(name)) }))
    .filter(({ names }) => names.length > 0);
  const masked = namespaceFlags.reduce((mask, flag) => mask | flag, 0);
  const plainClone = { names: ["clone"], action: "SCMP_ACT_ALLOW", args: [{ index: 0, value: masked, valueTwo: 0, op: "SCMP_CMP_MASKED_EQ" }] };
  // Its flags lie in memory, where a filter cannot look; the C libraries fall back to clone.
  const noClone3 = { names: ["clone3"], action: "SCMP_ACT_ERRNO", errnoRet: enosys };
  const refused = { names: closed.filter((name) => !name.startsWith("clone")), action: "SCMP_ACT_ERRNO", errnoRet: 1 };
  return { ...profile, syscalls: [...rest, plainClone, noClone3, refused] };
}

/** Writes the profile for this host's sandboxes; undefined where Podman has none to start from. */
export function writeSeccompProfile(dir: string): string | undefined {
  for (const path of defaultProfiles) {
    try {
      const profile = withoutNamespaces(JSON.parse(readFileSync(path, "utf8")) as Profile);
      const file = join(dir, "seccomp.json");
      writeFileSync(file, JSON.stringify(profile), { mode: 0o600 });
      return file;
    } catch {
      // The next place, or Podman's built-in list.
    }
  }
  return undefined;
}
