import assert from "node:assert/strict";
import { test } from "node:test";
import { mountAt, parseMounts } from "../../../../shared/util/mounts.ts";

test("a mount has its options and those of its file system, and names with spaces", () => {
  const [mount] = parseMounts("186 27 0:70 /@sandboxes /srv/my\\040data rw,nosuid,noatime shared:7 master:1 - btrfs /dev/loop1 rw,discard=async,subvolid=5\n");
  assert.deepEqual(mount, {
    device: "0:70",
    root: "/@sandboxes",
    point: "/srv/my data",
    type: "btrfs",
    source: "/dev/loop1",
    options: ["rw", "nosuid", "noatime"],
    systemOptions: ["rw", "discard=async", "subvolid=5"],
  });
});

test("folders that are no mount points have none", () => {
  assert.equal(mountAt("/proc")?.type, "proc");
  assert.equal(mountAt("/proc/self"), undefined);
});
