/** What a sandbox cannot do to the host. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { before, test } from "node:test";
import { Api } from "../helpers/api.ts";
import { Sandboxes } from "../helpers/sandboxes.ts";
import { sharedStack } from "../helpers/shared.ts";

const api = new Api(sharedStack());
const sandboxes = new Sandboxes(api);
let id: string;

before(async () => {
  id = await sandboxes.make();
});

/** Attempts, each of which must fail with one of these. */
const refusal =
  /not permitted|denied|Read-only|not found|No such|Invalid argument|Not supported|not supported|nonexistent|must be (superuser|root)|cannot open|Function not implemented/i;
const attempts: Record<string, string> = {
  "mount a file system": "mount -t tmpfs none /mnt",
  "mount a bind": "mount --bind /etc /mnt",
  "unmount what protects it": "umount /proc/sys",
  "remount /sys": "mount -o remount,rw /sys",
  "make a user namespace": "unshare -U true",
  "make a mount namespace": "unshare -m true",
  "make a network namespace": "unshare -n true",
  "make a pid namespace": "unshare -p true",
  "make all namespaces behind a user namespace": "unshare --user --map-root-user --mount --net --pid --fork true",
  "enter the namespaces of its first process": "nsenter -t 1 -m -n true",
  "make a device": "mknod /tmp/disk b 254 0",
  "write to /proc/sys": "echo 1 > /proc/sys/kernel/panic",
  "write the pattern of core dumps": "echo '|/bin/sh' > /proc/sys/kernel/core_pattern",
  "trigger a system request": "echo b > /proc/sysrq-trigger",
  "write to /sys": "echo 1 > /sys/kernel/uevent_helper || echo 1 > /sys/module/nf_tables/parameters/x",
  "write to a control group": "mkdir /sys/fs/cgroup/pids/own",
  "change the host's name": "hostname changed",
  "set the clock": "date -s 2001-01-01",
  "raise its limit of processes": "bash -c 'ulimit -Hu 999999 && ulimit -u 999999 && false'",
  "change its nice value below 0": "python3 -c 'import os; os.setpriority(os.PRIO_PROCESS, 0, -5)'",
};
for (const [name, command] of Object.entries(attempts)) {
  test(`a sandbox cannot ${name}`, async () => {
    const { exit_code, stdout, stderr } = await api.execute(id, command);
    assert.notEqual(exit_code, 0);
    assert.match(stdout + stderr, refusal);
  });
}

/** System calls by number (x86-64), with harmless arguments; each must be refused. */
const calls: Record<string, string> = {
  "load a kernel module": "313, -1, b'', 0",
  "load a module from memory": "175, b'', 0, b''",
  "load a kernel to boot": "246, 0, 0, 0, 0",
  "load a program into the kernel": "321, 5, b'0' * 128, 128",
  "read the host's kernel log": "103, 3, b'0' * 64, 64",
  reboot: "169, 0xfee1dead, 672274793, 0, 0",
  "turn swap on": "167, b'/dev/null', 0",
  "open files by handle": "304, -100, b'0' * 64, 0",
  "clone into a user namespace": "56, 0x10000011, 0, 0, 0, 0",
  "clone into a namespace with the newer call": "435, b'\\0\\0\\0\\x10' + b'\\0' * 84, 88",
  "move a mount": "429, -1, b'', -1, b'', 0",
  "set the host's clock": "227, 0, b'0' * 16",
};
const script = (args: string): string =>
  `import ctypes, os; libc = ctypes.CDLL(None, use_errno=True); print(libc.syscall(${args}), os.strerror(ctypes.get_errno()))`;
for (const [name, args] of Object.entries(calls)) {
  test(`the kernel refuses a sandbox to ${name}`, { skip: process.arch === "x64" ? false : "the numbers are those of x86-64" }, async () => {
    const { stdout } = await api.execute(id, `python3 - <<'END'\n${script(args)}\nEND`);
    assert.match(stdout, /^-1 (Operation not permitted|Function not implemented|Permission denied)\n$/);
  });
}

test("a sandbox cannot use raw or packet sockets", async () => {
  for (const kind of ["AF_INET, socket.SOCK_RAW, 1", "AF_PACKET, socket.SOCK_RAW, 768", "AF_INET6, socket.SOCK_RAW, 58"]) {
    const { stderr, exit_code } = await api.execute(id, `python3 -c 'import socket; socket.socket(socket.${kind})'`);
    assert.notEqual(exit_code, 0);
    assert.match(stderr, /not permitted|not supported/);
  }
});

test("a program with the setuid bit gives no more rights, and no capability is ever gained", async () => {
  const command = "cp /usr/bin/id /tmp/id && chmod 4755 /tmp/id && setpriv --reuid 1000 --regid 1000 --clear-groups /tmp/id -u";
  assert.equal((await api.execute(id, command)).stdout, "1000\n");
  const { stdout } = await api.execute(id, "grep -E 'NoNewPrivs|Seccomp:|CapBnd' /proc/self/status | tr -s '\\t\\n' ' '");
  assert.match(stdout, /CapBnd: 00000000000[0-9a-f]{5} NoNewPrivs: 1 Seccomp: 2/);
});

test("a sandbox sees its own processes only", async () => {
  const { stdout } = await api.execute(id, "ps -e -o args=");
  for (const line of stdout.trim().split("\n")) assert.match(line, /sandgate-init|^ps |sh -c/);
  assert.ok(!stdout.includes("nats-server") && !stdout.includes("node"));
});

test("a sandbox cannot read files, names and environment of the host", async () => {
  const dir = mkdtempSync(join(tmpdir(), "secret-"));
  const secret = randomBytes(16).toString("hex");
  try {
    writeFileSync(join(dir, "file"), secret, { mode: 0o644 });
    const paths = ["", "/proc/1/root", "/proc/1/cwd", "/proc/self/root/..", "/../../.."].map((prefix) => `${prefix}${dir}/file`);
    const { stdout } = await api.execute(id, `cat ${paths.join(" ")} 2>/dev/null; cat /proc/*/environ | tr '\\0' '\\n' | grep SANDGATE; hostname`);
    assert.ok(!stdout.includes(secret) && !stdout.includes("SANDGATE"));
    assert.notEqual(stdout.trim(), hostname());
  } finally {
    rmSync(dir, { recursive: true });
  }
});

test("files of one sandbox are not seen by another", async () => {
  const other = await sandboxes.make();
  await api.execute(id, "echo mine > /tmp/mine; echo mine > /dev/shm/mine; echo mine > /run/mine");
  assert.equal((await api.execute(other, "cat /tmp/mine /dev/shm/mine /run/mine 2>/dev/null")).stdout, "");
});
