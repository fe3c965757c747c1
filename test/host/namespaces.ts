/** What a machine of a test is apart in. */
import { readFileSync } from "node:fs";
import { parseMounts } from "../../shared/util/mounts.ts";

const namespaces = ["--mount", "--pid", "--fork", "--cgroup", "--uts", "--ipc", "--net"];

/** Runs a command as the first process of a machine. */
export const inNamespaces: readonly string[] = ["unshare", ...namespaces, "--propagation=private"];

/** Where this machine has cgroup v2; undefined when it has none. */
export const groupsMount = (): string | undefined => parseMounts(readFileSync("/proc/self/mountinfo", "utf8")).find(({ type }) => type === "cgroup2")?.point;
