/** How the texts of /proc are parsed. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { sumOf } from "../../../../../worker/runtime/container/segments.ts";
import { isMemoryObject, mappingsOf, residentBytes, sizesOf, writableMounts } from "../../../../../worker/runtime/process/proc-text.ts";

test("System V shared memory segments are added up, including swapped pages", () => {
  const table = [
    "       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  cgid      atime      dtime      ctime                   rss                  swap",
    "         0          0   600             104857600     5     5      0     0     0     0     0 1795353079 1795353079 1795353079                 40960                  8192",
    "         7          1   600             104857600     5     5      0     0     0     0     0 1795353079 1795353079 1795353079                  4096                     0",
  ].join("\n");
  assert.equal(sumOf(`${table}\n`), 53_248);
  assert.equal(sumOf(table.split("\n")[0] as string), 0);
});

test("writable mounts exclude read-only, device and kernel file systems", () => {
  const mountinfo = [
    "126 72 0:41 / / rw,relatime - overlay overlay rw,lowerdir=l",
    "128 126 0:46 / /proc rw,nosuid - proc proc rw",
    "129 126 0:48 / /dev rw,nosuid - tmpfs tmpfs rw,size=65536k",
    "171 129 0:6 /null /dev/null rw,nosuid - devtmpfs devtmpfs rw",
    "130 126 254:0 /usr/bin/x /run/x ro,relatime - ext4 /dev/vda rw",
    "135 126 254:0 /run/hosts /etc/hosts rw,relatime - ext4 /dev/vda rw",
    "136 129 0:39 / /mnt/with\\040space rw - tmpfs shm rw,size=64000k",
    "177 128 0:51 / /proc/acpi ro,relatime - tmpfs tmpfs rw,size=0k",
  ].join("\n");
  assert.deepEqual(writableMounts(mountinfo), ["/dev", "/etc/hosts", "/mnt/with space"]);
});

test("mappings without a file are told apart from files, and the kernel's memory objects from files on disk", () => {
  const smaps = [
    "7f92a6134000-7f92a7534000 rw-s 00000000 00:01 5                          /dev/zero (deleted)",
    "Pss:                1024 kB",
    "Anonymous:             0 kB",
    "7f92a7534000-7f92a7f34000 rw-s 00001000 00:29 1722579                    /root/a file (deleted)",
    "Pss:                   8 kB",
    "Anonymous:             4 kB",
    "7ffc0cd30000-7ffc0cd51000 rw-p 00000000 00:00 0                          [stack]",
    "Pss:                  64 kB",
    "564000000000-564000001000 r-xp 00000000 fe:00 17                         /usr/bin/x",
  ].join("\n");
  const [shared, file, program, ...rest] = mappingsOf(smaps);
  assert.deepEqual(rest, []);
  assert.deepEqual([shared?.pssBytes, shared?.inode, shared?.device, shared && isMemoryObject(shared)], [1024 * 1024, 5, 1, true]);
  assert.deepEqual([file?.name, file?.offset, file?.length, file?.anonymousBytes, file?.isDeleted], ["/root/a file (deleted)", 4096, 0xa00000, 4096, true]);
  assert.equal(file && isMemoryObject(file), false);
  assert.deepEqual([program?.isDeleted, program?.device], [false, 0xfe00]);
});

test("the sizes of this process are found by their names", () => {
  const sizes = sizesOf(readFileSync("/proc/self/status", "latin1"));
  assert.ok((sizes.get("RssAnon") ?? 0) > 1024 ** 2);
  assert.ok(residentBytes(sizes) >= (sizes.get("RssAnon") ?? 0));
  assert.ok((sizesOf(readFileSync("/proc/self/smaps_rollup", "latin1")).get("Pss_Anon") ?? 0) > 1024 ** 2);
});
