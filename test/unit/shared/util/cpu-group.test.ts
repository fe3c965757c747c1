/** Where the CPU groups of sandboxes are, from what /proc/self/mounts says. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { cpuGroupOf } from "../../../../shared/util/cpu-group.ts";

const mount = (dir: string, type: string, options: string): string => `${type} ${dir} ${type} rw,relatime,${options} 0 0`;

test("below the CPU controller of cgroup v1, alone or together with another one", () => {
  const others = [mount("/sys/fs/cgroup/cpuset", "cgroup", "cpuset"), mount("/sys/fs/cgroup/cpuacct", "cgroup", "cpuacct")];
  assert.equal(cpuGroupOf(1000, [...others, mount("/sys/fs/cgroup/cpu", "cgroup", "cpu")].join("\n")), "/sys/fs/cgroup/cpu/sandgate-1000");
  assert.equal(cpuGroupOf("7", mount("/sys/fs/cgroup/cpu,cpuacct", "cgroup", "cpu,cpuacct")), "/sys/fs/cgroup/cpu,cpuacct/sandgate-7");
});

test("nowhere on a host with cgroup v2 alone, or without the controller", () => {
  assert.equal(cpuGroupOf(1000, mount("/sys/fs/cgroup", "cgroup2", "nsdelegate")), undefined);
  assert.equal(cpuGroupOf(1000, mount("/sys/fs/cgroup/memory", "cgroup", "memory")), undefined);
  assert.equal(cpuGroupOf(1000, ""), undefined);
});
