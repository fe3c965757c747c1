/** What a sandbox tries to do to the host and to its neighbours, and the walls that hold it. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { existsSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Api } from "../../helpers/api.ts";
import { uploadRaw } from "../../helpers/files.ts";
import { fixture } from "../../helpers/fixture.ts";
import { temporaryFolder } from "../../helpers/folder.ts";
import { expectRefused, probe, probeOne } from "../../helpers/probes.ts";
import { Mark, Sandboxes } from "../../helpers/sandboxes.ts";
import { sharedStack } from "../../helpers/shared.ts";
import { until } from "../../helpers/until.ts";

const api = new Api(sharedStack());
const sandboxes = fixture(new Sandboxes(api));

/** Each must be refused with one of these. */
const refusals = ["EPERM", "EACCES", "EROFS", "ENOSYS"];
const cloneFlags = { user: 0x10000000, mount: 0x00020000, network: 0x40000000, pid: 0x20000000, ipc: 0x08000000, uts: 0x04000000, cgroup: 0x02000000 };
const namespaceAttempts = Object.entries(cloneFlags).flatMap(([kind, flag]) => [
  [`makes a namespace (${kind}) with unshare`, `call("unshare", ${flag})`],
  [`makes a namespace (${kind}) with clone`, `result = call("clone", ${flag} | 17, 0, 0, 0, 0)\nif result == 0: os._exit(9)`],
]);
const attempts: Record<string, string> = {
  ...Object.fromEntries(namespaceAttempts),
  "makes a namespace with clone3, whose flags lie in memory": 'call("clone3", struct.pack("Q", 0x10000000) + bytes(80), 88)',
  "makes a namespace of time": 'call("unshare", 0x80)',
  "enters the namespaces of its first process": 'call("setns", os.open("/proc/1/ns/mnt", 0), 0)',
  "mounts the control groups of version 1": 'call("mount", b"none", b"/mnt", b"cgroup", 0, b"memory")',
  "mounts the control groups of version 2": 'call("mount", b"none", b"/mnt", b"cgroup2", 0, None)',
  "makes a group beside its own": 'os.mkdir("/sys/fs/cgroup/free")',
  "mounts a file system": 'call("mount", b"none", b"/mnt", b"tmpfs", 0, None)',
  "binds a folder elsewhere": 'call("mount", b"/etc", b"/mnt", None, 4096, None)',
  "makes /sys writable": 'call("mount", None, b"/sys", None, 32, None)',
  "makes mounts be seen by the host": 'call("mount", None, b"/", None, 1 << 20, None)',
  "unmounts what protects /proc/sys": 'call("umount2", b"/proc/sys", 2)',
  "changes the root of mounts": 'call("pivot_root", b"/mnt", b"/mnt")',
  "makes the node of a disk": 'os.mknod("/tmp/disk", stat.S_IFBLK | 0o600, os.makedev(254, 0))',
  "makes the node of the machine's memory": 'os.mknod("/tmp/mem", stat.S_IFCHR | 0o600, os.makedev(1, 1))',
  "makes the node of KVM": 'os.mknod("/tmp/kvm", stat.S_IFCHR | 0o600, os.makedev(10, 232))',
  "writes to /proc/sys": 'write("/proc/sys/kernel/panic", "1")',
  "has core dumps handled by a program on the host": 'write("/proc/sys/kernel/core_pattern", "|/bin/sh")',
  "raises its bounds of shared memory": 'write("/proc/sys/kernel/shmmax", "18446744073692774399")',
  // Kernels without system requests have no such file.
  ...(existsSync("/proc/sysrq-trigger") ? { "triggers a system request": 'write("/proc/sysrq-trigger", "b")' } : {}),
  "moves to another control group": 'os.open("/sys/fs/cgroup/cgroup.procs", os.O_CREAT | os.O_WRONLY)',
  "makes a control group": 'os.mkdir("/sys/fs/cgroup/own")',
  "makes a file below /sys/fs/cgroup": 'os.open("/sys/fs/cgroup/own", os.O_CREAT | os.O_WRONLY)',
  "changes the mode of /sys/fs/cgroup": 'os.chmod("/sys/fs/cgroup", 0o777)',
  "raises its limit of open files": 'hard = resource.getrlimit(7)[1]; call("prlimit64", 0, 7, struct.pack("QQ", hard + 1, hard + 1), None)',
  "raises its limit of processes": 'call("prlimit64", 0, 6, bytes([255] * 16), None)',
  "raises its priority": "os.setpriority(os.PRIO_PROCESS, 0, -5)",
  "raises its priority to that of real time": "os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))",
  "locks more memory than the limit": 'call("prlimit64", 0, 8, bytes([255] * 16), None)',
  "keeps itself from being ended when memory is short": 'write("/proc/self/oom_score_adj", "-1000")',
};

const id = await sandboxes.make();
const outcomes = await probe(api, id, attempts);

for (const name of Object.keys(attempts)) {
  test(name, () => expectRefused(outcomes[name], ...refusals));
}

test("finds a file of the kernel below /proc or /sys that it can write to", async () => {
  const script = `
result = []
for top in ("/proc", "/sys"):
    for folder, folders, files in os.walk(top):
        if folder == "/proc": folders[:] = [name for name in folders if not name.isdigit() and name not in ("self", "thread-self")]
        for name in files:
            path = os.path.join(folder, name)
            if os.path.islink(path): continue
            try: os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
            except OSError: continue
            if not stat.S_ISCHR(os.stat(path).st_mode): result.append(path)`;
  assert.deepEqual(await probeOne(api, id, script), { done: [] });
});

test("finds a device of the host in /dev", async () => {
  const script = `
devices = {name for name in os.listdir("/dev") if stat.S_IFMT(os.lstat("/dev/" + name).st_mode) in (stat.S_IFCHR, stat.S_IFBLK)}
result = sorted(devices - {"null", "zero", "full", "random", "urandom", "tty", "console", "ptmx"})`;
  assert.deepEqual(await probeOne(api, id, script), { done: [] });
});

test("leaves its root with two of them (chroot)", async () => {
  const script = `
def identity(): return [os.stat("/").st_dev, os.stat("/").st_ino]
before = identity()
root = os.open("/", os.O_RDONLY)
os.makedirs("/tmp/jail", exist_ok=True)
os.chroot("/tmp/jail")
os.fchdir(root)
for _ in range(64): os.chdir("..")
os.chroot(".")
result = identity() == before`;
  assert.deepEqual(await probeOne(api, id, script), { done: true });
});

test("is spared when memory is short, at the cost of the host's own processes", async () => {
  const script = 'result = [int(open("/proc/%s/oom_score_adj" % pid).read()) for pid in ("1", "self", os.getppid())]';
  assert.deepEqual(await probeOne(api, id, script), { done: [1000, 1000, 1000] });
});

test("is spared when memory is short, as the program that takes an upload", async () => {
  const count = async (): Promise<number> => {
    const { stdout } = await api.execute(id, "cat /proc/[0-9]*/oom_score_adj");
    assert.match(stdout, /^(1000\n)+$/);
    return stdout.length;
  };
  const resting = await count();
  const { promise: looked, resolve: end } = Promise.withResolvers<void>();
  const body = new ReadableStream<Uint8Array>({
    start: async (controller) => {
      controller.enqueue(new Uint8Array(1_000));
      await looked;
      controller.close();
    },
  });
  const uploading = uploadRaw(api, id, "/srv/slow", body);
  await until("the program runs", async () => (await count()) > resting).finally(end);
  assert.equal((await uploading).status, 200);
});

test("traces, reads, signals or opens a process of another sandbox by its number on the host", async () => {
  const other = await sandboxes.make();
  const mark = new Mark();
  const running = api.execute(other, "exec sleep 60", { env: mark.env, timeout: 60 });
  const [pid] = await until("the other sandbox's process runs", () => (mark.living().length > 0 ? mark.living() : undefined));
  const attemptsOn = {
    trace: `call("ptrace", 16, ${pid}, None, None)`,
    read: `place = ctypes.create_string_buffer(8); vector = struct.pack("QQ", ctypes.addressof(place), 8); call("process_vm_readv", ${pid}, vector, 1, vector, 1, 0)`,
    signal: `os.kill(${pid}, 0)`,
    open: `call("pidfd_open", ${pid}, 0)`,
  };
  for (const outcome of Object.values(await probe(api, id, attemptsOn))) expectRefused(outcome, "ESRCH");
  assert.ok(mark.living().includes(pid ?? 0));
  await api.delete(other);
  await running.catch(() => {});
});

test("gains rights by a program with the setuid bit", async () => {
  const command = "cp /usr/bin/id /tmp/id && chmod 4755 /tmp/id && setpriv --reuid 1000 --regid 1000 --clear-groups /tmp/id -u";
  assert.equal((await api.execute(id, command)).stdout, "1000\n");
  const { stdout } = await api.execute(id, "grep -E 'NoNewPrivs|Seccomp:|CapBnd' /proc/self/status | tr -s '\\t\\n' ' '");
  assert.match(stdout, /CapBnd: 00000000000[0-9a-f]{5} NoNewPrivs: 1 Seccomp: 2/);
});

test("looks for processes of the host", async () => {
  const { stdout } = await api.execute(id, "ps -e -o args=");
  for (const line of stdout.trim().split("\n")) assert.match(line, /\.sandgate-(init|exec)|^ps |sh -c/);
  assert.ok(!stdout.includes("nats-server") && !stdout.includes("node"));
});

test("reads files, names and environment of the host", async () => {
  using folder = temporaryFolder("secret");
  const dir = folder.path;
  const secret = randomBytes(16).toString("hex");
  writeFileSync(join(dir, "file"), secret, { mode: 0o644 });
  const paths = ["", "/proc/1/root", "/proc/1/cwd", "/proc/self/root/..", "/../../.."].map((prefix) => `${prefix}${dir}/file`);
  const { stdout } = await api.execute(id, `cat ${paths.join(" ")} 2>/dev/null; cat /proc/*/environ | tr '\\0' '\\n' | grep SANDGATE; hostname`);
  assert.ok(!stdout.includes(secret) && !stdout.includes("SANDGATE"));
  assert.notEqual(stdout.trim(), hostname());
});

test("reads files of another sandbox", async () => {
  const other = await sandboxes.make();
  await api.execute(id, "echo mine > /tmp/mine; echo mine > /dev/shm/mine; echo mine > /run/mine");
  assert.equal((await api.execute(other, "cat /tmp/mine /dev/shm/mine /run/mine 2>/dev/null")).stdout, "");
});
