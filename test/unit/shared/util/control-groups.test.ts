/** Where our control groups are, from what /proc/self/mountinfo and /proc/self/cgroup say. */
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { distinctFolders, groupFoldersOf } from "../../../../shared/util/control-groups.ts";
import { temporaryFolder } from "../../../helpers/folder.ts";

const mount = (dir: string, type: string, options: string, root = "/"): string =>
  `30 20 0:26 ${root} ${dir} rw,relatime shared:9 - ${type} ${type} rw,${options}`;
const foldersOf = (uid: number, mounts: readonly string[], own: readonly string[]) => groupFoldersOf(uid, { mounts: mounts.join("\n"), own: own.join("\n") });

test("one folder in each hierarchy of cgroup v1, where several controllers may share one", () => {
  const groups = foldersOf(
    1000,
    [mount("/none/cpuset", "cgroup", "cpuset"), mount("/none/cpu,cpuacct", "cgroup", "cpu,cpuacct"), mount("/none/pids", "cgroup", "pids")],
    [],
  );
  assert.equal(groups?.version, "v1");
  assert.deepEqual(groups.folders, {
    cpu: "/none/cpu,cpuacct/sandgate-1000",
    cpuacct: "/none/cpu,cpuacct/sandgate-1000",
    pids: "/none/pids/sandgate-1000",
  });
  assert.deepEqual(distinctFolders(groups.folders), ["/none/cpu,cpuacct/sandgate-1000", "/none/pids/sandgate-1000"]);
  assert.deepEqual(groups.hierarchies, ["/none/cpu,cpuacct", "/none/pids"]);
});

test("below the group of this process, also where only a part of the hierarchy is mounted", () => {
  // Folders that exist on every machine stand for groups.
  const whole = foldersOf(7, [mount("/proc", "cgroup", "memory")], ["4:memory:/self", "1:cpu:/other"]);
  assert.equal(whole?.folders.memory, "/proc/self/sandgate-7");
  const part = foldersOf(7, [mount("/proc", "cgroup", "memory", "/docker/a")], ["4:memory:/docker/a/self"]);
  assert.equal(part?.folders.memory, "/proc/self/sandgate-7");
  const outside = foldersOf(7, [mount("/proc", "cgroup", "memory", "/docker/a")], ["4:memory:/docker/ab"]);
  assert.equal(outside?.folders.memory, "/proc/sandgate-7");
});

test("one folder for all controllers with cgroup v2 alone; beside v1, its hierarchy is not asked", () => {
  const unified = foldersOf(7, [mount("/proc", "cgroup2", "nsdelegate")], ["0::/self"]);
  assert.equal(unified?.version, "v2");
  assert.deepEqual(distinctFolders(unified.folders), ["/proc/self/sandgate-7"]);
  const hybrid = foldersOf(7, [mount("/proc", "cgroup2", "nsdelegate"), mount("/none/memory", "cgroup", "memory")], ["0::/self"]);
  assert.deepEqual([hybrid?.version, hybrid?.folders], ["v1", { memory: "/none/memory/sandgate-7" }]);
});

test("below the group of the start for processes, too, which with cgroup v2 have moved below it", () => {
  using folder = temporaryFolder("groups");
  const dir = folder.path;
  for (const own of ["started/sandgate-7/account", "sandgate-others"]) mkdirSync(join(dir, own), { recursive: true });
  const from = (own: string) => distinctFolders(foldersOf(7, [mount(dir, "cgroup2", "nsdelegate")], [`0::${own}`])?.folders ?? {});
  assert.deepEqual(from("/started/sandgate-7/account"), [join(dir, "started/sandgate-7")]);
  assert.deepEqual(from("/sandgate-others"), [join(dir, "sandgate-7")], "in a container whose other processes had to move");
});

test("nowhere without control groups", () => {
  assert.equal(foldersOf(7, [], []), undefined);
});
