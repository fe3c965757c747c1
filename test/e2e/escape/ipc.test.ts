/** Shared memory, semaphores and message queues: exceeding the sandbox's memory, outliving its commands, or belonging to neighbors. */
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { release } from "node:os";
import { test } from "node:test";
import { Api } from "../../helpers/api.ts";
import { fixture } from "../../helpers/fixture.ts";
import { expectRefused, probeOne } from "../../helpers/probes.ts";
import { Sandboxes } from "../../helpers/sandboxes.ts";
import { sharedStack } from "../../helpers/shared.ts";
import { until } from "../../helpers/until.ts";

const memoryMiB = 128;
/** Since Linux 6.9 the worker can bound shared memory; before, it is closed where no memory limit holds it. */
const [major = 0, minor = 0] = release().split(".").map(Number);
const isOpen = major > 6 || (major === 6 && minor >= 9) || existsSync("/sys/fs/cgroup/cgroup.controllers");
const api = new Api(sharedStack());
const sandboxes = fixture(new Sandboxes(api));

const [id, other] = await Promise.all([sandboxes.make({ resources: { memory: memoryMiB } }), sandboxes.make()]);

test("makes a shared segment larger than its memory", async () => {
  expectRefused(await probeOne(api, id, `result = call("shmget", 0, ${memoryMiB} << 20 | 1, 0o1600)`), "EINVAL", "ENOSYS");
});

test("makes many shared segments that are larger together than its memory", async () => {
  // Nothing is written to them: the sizes alone count.
  expectRefused(await probeOne(api, id, `for _ in range(17): call("shmget", 0, ${memoryMiB / 16} << 20, 0o1600)`), "ENOSPC", "ENOSYS");
});

test("makes shared segments without number", async () => {
  expectRefused(await probeOne(api, id, 'for _ in range(5000): call("shmget", 0, 1, 0o1600)'), "ENOSPC", "ENOSYS");
});

test("leaves shared memory behind that no process has", async () => {
  const script = `
key = 4711
pid = os.fork()
if pid == 0:
    try: call("shmget", key, 1 << 20, 0o1600); os._exit(0)
    except OSError as error: os._exit(error.errno)
code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
if code: raise OSError(code, "")
call("shmget", key, 0, 0)`;
  expectRefused(await probeOne(api, id, script), "ENOENT", "ENOSYS");
});

test("control: shared memory works within the bounds", async () => {
  const script = `
segment = call("shmget", 0, 1 << 20, 0o1600)
libc.shmat.restype = ctypes.c_void_p
address = libc.shmat(segment, None, 0)
pid = os.fork()
if pid == 0: ctypes.memmove(address, b"written", 7); os._exit(0)
os.waitpid(pid, 0)
result = ctypes.string_at(address, 7).decode()`;
  assert.deepEqual(await probeOne(api, id, script), isOpen ? { done: "written" } : { errno: "ENOSYS" });
});

test("fills the kernel's memory with message queues", async () => {
  const script = `
full = 0
for _ in range(5000):
    queue = call("msgget", 0, 0o1600)
    if full < 4:
        try:
            while True: call("msgsnd", queue, struct.pack("q", 1) + bytes(8192), 8192, 0o4000)
        except OSError as error:
            if error.errno != errno.EAGAIN: raise
            full += 1`;
  expectRefused(await probeOne(api, id, script), "ENOSPC", "ENOSYS");
});

test("fills the kernel's memory with semaphores", async () => {
  expectRefused(await probeOne(api, id, 'for _ in range(5000): call("semget", 0, 250, 0o1600)'), "ENOSPC", "ENOSYS");
  expectRefused(await probeOne(api, id, 'call("semget", 0, 32000, 0o1600)'), "EINVAL", "ENOSYS");
});

test("takes all POSIX message queues of the user, so that neighbours have none", async () => {
  const open = (name: string): string => `call("mq_open", b"${name}%d" % i, os.O_CREAT | os.O_RDWR, 0o600, None)`;
  expectRefused(await probeOne(api, id, `for i in range(100): ${open("mine")}`), "ENOSPC", "ENOSYS");
  const neighbour = await probeOne(api, other, `i = 0\n${open("theirs")}`);
  assert.ok("done" in neighbour || ("errno" in neighbour && neighbour.errno === "ENOSYS"), JSON.stringify(neighbour));
});

test("opens shared memory of another sandbox by its key", async () => {
  const hold = `
libc.shmat(call("shmget", 99, 4096, 0o1666), None, 0)
open("/tmp/holds", "w").close()
while not os.path.exists("/tmp/looked"): time.sleep(0.05)`;
  const holding = probeOne(api, other, hold);
  if (isOpen) await until("the other sandbox has it", async () => (await api.execute(other, "test -e /tmp/holds")).exit_code === 0);
  const found = await probeOne(api, id, 'call("shmget", 99, 0, 0)');
  await api.execute(other, "touch /tmp/looked");
  assert.deepEqual(await holding, isOpen ? { done: null } : { errno: "ENOSYS" });
  expectRefused(found, "ENOENT", "ENOSYS");
});
