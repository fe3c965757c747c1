/** What the helper lets a worker do about memory, and what it makes of what it finds (systemd/helper/THREATS.md). CRIU itself is in test/host. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { mkdir, readFile, rmdir, statfs, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { idsPerSandbox, parseReply, parseRequest } from "../../../../shared/privileged.ts";
import { reasonIn } from "../../../../systemd/helper/memory/criu.ts";
import { MemoryImages } from "../../../../systemd/helper/memory/images.ts";
import { foreignMounts, namedMounts } from "../../../../systemd/helper/memory/mounts.ts";
import { extentsIn, isOfSandbox } from "../../../../systemd/helper/memory/owner.ts";
import { memoryOf, refuseWithoutRoom } from "../../../../systemd/helper/memory/room.ts";
import { commandsFor, waysOut } from "../../../../systemd/helper/memory/settle.ts";
import { giveUsers, usersImage } from "../../../../systemd/helper/memory/users.ts";
import { fixture } from "../../../helpers/fixture.ts";
import { temporaryFolder } from "../../../helpers/folder.ts";
import { unifiedGroup } from "../../../helpers/unified-group.ts";
import { until } from "../../../helpers/until.ts";

const folder = fixture(temporaryFolder("memory", 0o700));
const account = { name: "nobody-at-all", uid: 65_534, gid: 65_534 };
const ranges = [
  { owner: "worker", first: 1_000_000, count: idsPerSandbox },
  { owner: "worker", first: 3_000_000, count: 4 * idsPerSandbox },
];

test("requests have numbers only, within bounds", () => {
  const ask = (fields: object) => parseRequest(JSON.stringify({ id: 1, ...fields }));
  assert.ok(ask({ verb: "memory.check" }) && ask({ verb: "memory.dump", image: 1, process: 2 }) && ask({ verb: "memory.remove", image: 5 }));
  for (const image of ["../../etc", "1", 0, -1, 1.5, 2 ** 60, null, {}]) assert.equal(ask({ verb: "memory.remove", image }), undefined, String(image));
  for (const process of [1, 0, -1, "self", 2 ** 23]) assert.equal(ask({ verb: "memory.restore", image: 1, process }), undefined, String(process));
  assert.equal(ask({ verb: "memory.restore", image: 1, process: 2, command: "true" }), undefined);
  assert.ok(ask({ verb: "memory.connect", process: 2, copy: 3 }));
  for (const copy of [1, "tap0", undefined]) assert.equal(ask({ verb: "memory.connect", process: 2, copy }), undefined, String(copy));
  assert.deepEqual(parseReply('{"id":1,"ok":true,"value":7}'), { id: 1, ok: true, value: 7 });
  assert.equal(parseReply('{"id":1,"ok":true,"value":"7"}'), undefined);
});

test("only a process with the ids of one sandbox, all of them the worker's, can be dumped or given copies", () => {
  const isOne = (map: string): boolean => isOfSandbox(extentsIn(map), ranges);
  assert.equal(isOne(`         0    3065536      ${idsPerSandbox}\n`), true);
  assert.equal(isOne(`0 1000000 60000\n60000 3000000 ${idsPerSandbox - 60_000}`), true);
  for (const map of [
    "0 0 4294967295",
    `0 0 1\n1 3000000 ${idsPerSandbox - 1}`,
    `0 996 1\n1 1000000 ${idsPerSandbox - 1}`,
    "0 3000000 10",
    `0 3000000 ${2 * idsPerSandbox}`,
    `0 2999999 ${idsPerSandbox}`,
    `0 ${3_000_000 + 3 * idsPerSandbox + 1} ${idsPerSandbox}`,
    "",
    "x y z",
  ])
    assert.equal(isOne(map), false, map);
});

test("processes of the host are refused, and nothing is left", async () => {
  const dir = join(folder.path, "images");
  const images = new MemoryImages({ dir, floorBytes: 0, keyFile: join(folder.path, "no-key") }, { pid: process.pid, account });
  for (const pid of [process.pid, process.ppid, 2 ** 22]) {
    await assert.rejects(images.dump(1, pid), { fault: "refused", message: /not the first of a sandbox/ });
    await assert.rejects(images.restore(1, pid), { fault: "refused", message: /not the first of a sandbox/ });
    await assert.rejects(images.connect(pid, process.pid), { fault: "refused", message: /not the first of a sandbox/ });
  }
  await assert.rejects(images.resume(1), { fault: "refused", message: /nothing is being dumped/ });
  assert.equal(existsSync(dir), false);
  await images.remove(1);
  await images.close();
});

test("no image is begun that would leave its disk less than the floor, by what the processes of the sandbox hold now", async () => {
  const { bavail, bsize } = await statfs(folder.path);
  await refuseWithoutRoom({ dir: folder.path, floorBytes: 0 }, 0);
  await assert.rejects(refuseWithoutRoom({ dir: folder.path, floorBytes: 0 }, 2 * bavail * bsize), { fault: "refused", message: /no room for it/ });
  await assert.rejects(refuseWithoutRoom({ dir: folder.path, floorBytes: 2 * bavail * bsize }, 0), { fault: "refused", message: /no room for it/ });
  await using group = unifiedGroup("memory-room");
  const below = join(group.path, "below");
  await mkdir(below);
  const script = `x = bytearray(64 * 1024 ** 2); print("held", flush=True); import time; time.sleep(600)`;
  const child = spawn("python3", ["-c", script], { stdio: ["ignore", "pipe", "inherit"] });
  try {
    await once(child.stdout, "data");
    assert.equal(memoryOf(group.path), 0);
    await writeFile(join(below, "cgroup.procs"), String(child.pid));
    assert.ok(memoryOf(group.path) >= 64 * 1024 ** 2, String(memoryOf(group.path)));
  } finally {
    child.kill("SIGKILL");
    await once(child, "exit");
    await until("the group is empty", async () => (await readFile(join(below, "cgroup.procs"), "utf8")) === "");
    await rmdir(below);
  }
});

test("mounts that lead out of a sandbox are known by number", () => {
  const paths = foreignMounts(process.pid);
  assert.equal(paths.includes("/"), false);
  assert.equal(new Set(paths).size, paths.length);
  assert.deepEqual(namedMounts(["/dev/null", "/etc/hosts"]), ["--external", "mnt[/dev/null]:m0", "--external", "mnt[/etc/hosts]:m1"]);
});

test("an image gets the ids of another sandbox, in a file of its own", async () => {
  const dir = join(folder.path, "users");
  await mkdir(dir);
  const extents = extentsIn(`0 1879113728 ${idsPerSandbox}`);
  await assert.rejects(giveUsers(dir, { users: extents, groups: extents }), { fault: "refused" });
  await writeFile(join(dir, "userns-14.img"), "old");
  await giveUsers(dir, { users: extents, groups: extents });
  const written = readFileSync(join(dir, "userns-14.img"));
  assert.deepEqual(written, usersImage(extents, extents));
  // As CRIU 4.1.1 has written it for such a sandbox, with another first id.
  assert.equal(written.toString("hex"), "1943565406494755" + "1c000000" + "0a0c" + "0800" + "10808084800718808004" + "120c" + "0800" + "10808084800718808004");
});

test("a network device is moved with its address, its size and its way out", () => {
  const device = {
    ifname: "tap0",
    mtu: 65_520,
    flags: ["BROADCAST", "UP"],
    addr_info: [
      { family: "inet", local: "10.0.2.100", prefixlen: 24 },
      { family: "inet6", local: "fe80::1", prefixlen: 64 },
    ],
  };
  const loopback = { ...device, ifname: "lo", flags: ["LOOPBACK", "UP"] };
  assert.deepEqual(waysOut([loopback, device, { ...device, ifname: "off", flags: [] }]), [device]);
  for (const ifname of ["-x", "a b", "tap0;reboot", "x".repeat(16), "../x"]) assert.throws(() => waysOut([{ ...device, ifname }]), { fault: "refused" });
  const routes = [
    { dst: "default", gateway: "10.0.2.2", dev: "tap0" },
    { dst: "10.0.2.0/24", dev: "tap0" },
    { dst: "default", gateway: "x; reboot", dev: "tap0" },
    { dst: "default", gateway: "10.9.9.9", dev: "other" },
  ];
  assert.deepEqual(commandsFor(device, routes), [
    "address add 10.0.2.100/24 dev tap0",
    "link set tap0 mtu 65520 up",
    "route add default via 10.0.2.2 dev tap0",
  ]);
});

test("the first error of CRIU that is one is the reason", () => {
  const log = [
    "(00.001) Error (criu/rlimit.c:28): rlimit: Can't setup RLIMIT_NOFILE for self: Operation not permitted",
    "(00.100) Warn  (criu/x.c:1): something",
    "(00.200) Error (criu/sockets.c:1): sockets: no",
    "(00.300) Error (criu/cr-dump.c:2): Dumping FAILED.",
  ];
  assert.equal(reasonIn(log.join("\n")), "sockets: no");
  assert.match(reasonIn("(0) Error (criu/tty.c:1): tty: Found slave") ?? "", /^a terminal is open/);
  assert.equal(reasonIn("all is well"), undefined);
});
