/** Memory that no counter of a process shows: taken out of the sandbox's own, and given back when its commands are ended. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { Api, ExecuteResult } from "../../helpers/api.ts";
import { fixture } from "../../helpers/fixture.ts";
import { Mark, Sandboxes } from "../../helpers/sandboxes.ts";
import { until } from "../../helpers/until.ts";

const limitMiB = 256;

interface Status {
  readonly current: { readonly memory_mb: number; readonly disk_mb: number };
}

/** A Python program with these at hand: `MiB`, `segment(MiB)` that holds a System V segment, `memfd(MiB)`. */
const python = (program: string): string => `python3 - <<'END'
import ctypes, mmap, os, time
MiB = 1 << 20
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
def segment(size):
    """Whether there was room for it: its bound is the sandbox's memory."""
    id = libc.shmget(0, size * MiB, 0o1600)
    if id < 0: return False
    address = libc.shmat(id, None, 0)
    ctypes.memset(address, 1, size * MiB)
    return True
def memfd(size):
    fd = os.memfd_create("held")
    for _ in range(size): os.write(fd, b"x" * MiB)
    return fd
${program}
END`;

function assertEnded(result: ExecuteResult): void {
  assert.deepEqual([result.status, result.exit_code], ["completed", 137], JSON.stringify(result));
  assert.match(result.error ?? "", /out of memory/);
}

const attacks: Record<string, string> = {
  "fills System V shared memory to its bound, and goes on with memfds":
    "left = 40\nwhile left and segment(16): left -= 1\nprint('segments', 40 - left)\nkept = [memfd(16) for _ in range(left)]\ntime.sleep(60)",
  "writes a memfd that it never maps": "fd = memfd(640)\ntime.sleep(60)",
  "maps memfds and closes them": "kept = [mmap.mmap(memfd(1), MiB) for _ in range(400)]\ntime.sleep(60)",
  "has a child fill memory that it shares with its parent": `shared = mmap.mmap(-1, 640 * MiB)
if os.fork() == 0:
    for i in range(640): shared[i * MiB : (i + 1) * MiB] = b"x" * MiB
    time.sleep(60)
raise SystemExit(128 + (os.wait()[1] & 127))`,
  "makes a million empty files in memory": `for i in range(1000000): os.close(os.open("/dev/shm/%d" % i, os.O_CREAT | os.O_WRONLY))
time.sleep(60)`,
};
/** @param how in which way the memory of these sandboxes is limited */
export async function memoryTopics(api: Api, how: string): Promise<void> {
  const sandboxes = fixture(new Sandboxes(api));
  const [greedy, neighbour] = await Promise.all([sandboxes.make({ resources: { memory: limitMiB } }), sandboxes.make()]);

  async function memoryOf(id: string): Promise<number> {
    return (await api.call<Status>("GET", `/v1/sandboxes/${id}/status`)).body.current.memory_mb;
  }

  /** The least of several looks: the first may count what starts the exec server, which ends soon. */
  async function restingMemoryOf(id: string): Promise<number> {
    await api.execute(id, "true");
    const looks: number[] = [];
    for (; looks.length < 5; await sleep(300)) looks.push(await memoryOf(id));
    return Math.min(...looks);
  }

  /** The sandbox has its memory back and works, and the other one has not noticed anything. */
  async function assertFreed(mark: Mark, asleep: Promise<ExecuteResult>): Promise<void> {
    await until("the memory is free again", async () => (await memoryOf(greedy)) < limitMiB / 2);
    await until("the sandbox answers", async () => (await api.execute(greedy, "cat /srv/kept").catch(() => undefined))?.stdout === "kept\n");
    assert.equal((await api.execute(neighbour, "echo usable")).stdout, "usable\n");
    assert.ok(mark.living().length > 0, "the command of the neighbour runs on");
    await api.execute(neighbour, "pkill -f 'sleep 277'");
    assert.equal((await asleep).error, undefined);
  }

  for (const [name, program] of Object.entries(attacks)) {
    test(`${name}, ${how}`, async () => {
      await api.execute(greedy, "echo kept > /srv/kept");
      const mark = new Mark();
      const asleep = api.execute(neighbour, "sleep 277; true", { timeout: 280, env: mark.env });
      await until("the neighbour's command runs", () => mark.living().length > 0);
      assertEnded(await api.execute(greedy, python(program), { timeout: 120 }));
      await assertFreed(mark, asleep);
    });
  }

  test(`status counts files in memory, ${how}`, async () => {
    const id = await sandboxes.make();
    const before = await restingMemoryOf(id);
    await api.execute(id, "head -c 40M /dev/zero > /dev/shm/file");
    await until("the file counts", async () => (await memoryOf(id)) >= before + 40);
    await api.execute(id, "rm /dev/shm/file");
    await until("it does not any more", async () => (await memoryOf(id)) < before + 20);
  });

  test(`status counts a segment and a memfd of a command that runs, ${how}`, async () => {
    const id = await sandboxes.make();
    const before = await restingMemoryOf(id);
    const mark = new Mark();
    // Where nobody can bound segments, there are none.
    const program = "segment(50) or memfd(50)\nfd = memfd(50)\ntime.sleep(100)";
    const running = api.execute(id, python(program), { timeout: 110, env: mark.env });
    await until("both count", async () => (await memoryOf(id)) >= before + 100);
    await api.execute(id, "pkill python3");
    await running;
    await mark.gone();
    await until("they do not any more", async () => (await memoryOf(id)) < before + 50);
  });

  test(`pages that a parent shares with its children count once, ${how}`, async () => {
    const id = await sandboxes.make({ resources: { memory: 512 } });
    const script = `kept = b"x" * (50 * MiB)
for _ in range(12):
    if os.fork() == 0:
        time.sleep(6)
        os._exit(0)
for _ in range(12): os.wait()
print("all came back")`;
    const mark = new Mark();
    const running = api.execute(id, python(script), { timeout: 60, env: mark.env });
    // The parent, its children, the shell above them and what keeps them together.
    await until("the children are there", () => mark.living().length >= 14);
    await until("the parent's pages count", async () => (await memoryOf(id)) > 50);
    const memory = await memoryOf(id);
    assert.ok(memory > 50 && memory < 200, `${memory} MB`);
    const { stdout, error } = await running;
    assert.deepEqual([stdout, error], ["all came back\n", undefined]);
  });
}
