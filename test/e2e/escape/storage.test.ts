/** Disk use that a walk through the files does not see, inodes instead of bytes, and the effect on others. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Api, type ExecuteResult } from "../../helpers/api.ts";
import { fixture } from "../../helpers/fixture.ts";
import { Mark, Sandboxes } from "../../helpers/sandboxes.ts";
import { sharedStack } from "../../helpers/shared.ts";
import { SmallDisk } from "../../helpers/small-disk.ts";
import { startStack } from "../../helpers/stack.ts";
import { until } from "../../helpers/until.ts";

const api = new Api(sharedStack());
const sandboxes = fixture(new Sandboxes(api));
/** Without a volume, so that the worker watches what the kernel does not limit. */
const watched = new Api(await fixture(startStack({ name: "watched", settings: { SANDGATE_VOLUME: "none" } })));

const python = (program: string): string => `python3 - <<'END'
import mmap, os, time
def unnamed(mebibytes):
    fd = os.open("/root/unnamed", os.O_RDWR | os.O_CREAT)
    os.unlink("/root/unnamed")
    os.posix_fallocate(fd, 0, mebibytes << 20)
    return fd
${program}
END`;

const attacks: Record<string, string> = {
  "fallocates more than its storage in a file without a name": python("fd = unnamed(1200)\ntime.sleep(100)"),
  "holds a file without a name by a mapping alone": python(
    "import ctypes\nfd = unnamed(1200)\nlibc = ctypes.CDLL(None)\nlibc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]\nlibc.mmap(None, 1200 << 20, 1, 1, fd, 0)\nos.close(fd)\ntime.sleep(100)",
  ),
  "makes more empty files than its storage allows": python(
    'os.mkdir("/root/many")\nfor i in range(70000): os.close(os.open("/root/many/%d" % i, os.O_CREAT | os.O_WRONLY))\ntime.sleep(100)',
  ),
};
for (const [name, command] of Object.entries(attacks)) {
  test(name, async () => {
    const id = await watched.create({ resources: { storage: 1 } });
    await expectEnded(watched, id, command);
  });
}

async function expectEnded(api: Api, id: string, command: string): Promise<void> {
  const result = await api.execute(id, command, { timeout: 110 });
  assert.deepEqual([result.status, result.exit_code], ["completed", 137], JSON.stringify(result));
  assert.match(result.error ?? "", /out of storage.* 1 GB/);
  await until("the sandbox is usable", async () => (await api.execute(id, "rm -rf /root/many; sleep 1; echo usable")).stdout === "usable\n");
}

for (const [how, over] of [
  ["", watched],
  ["on a volume, ", api],
] as const) {
  test(`${how}fills the files that are mounted from the host, where all of the worker's containers have what they need`, async () => {
    const id = await over.create({ resources: { memory: 256 } });
    // Together they have 256 KiB, however much the sandbox may take of anything else.
    const fill = "for file in /etc/hosts /etc/hostname /etc/resolv.conf /run/.containerenv; do head -c 1M /dev/zero > $file; fallocate -l 1M $file; done";
    const { stderr } = await over.execute(id, fill, { timeout: 110 });
    assert.match(stderr, /No space left on device/);
    const { stdout } = await over.execute(id, "cat /etc/hosts /etc/hostname /etc/resolv.conf /run/.containerenv | wc -c");
    assert.ok(Number(stdout) <= 256 * 1024, stdout);
    assert.equal((await over.execute(await over.create(), "getent hosts $(hostname) | wc -l")).stdout, "1\n");
  });
}

/** What the kernel refuses; nobody is ended for it. */
const refused: Record<string, string> = {
  "fallocates more than its storage in a file without a name": python("fd = unnamed(1200)"),
  "writes more than its storage in many files at once":
    "fallocate -l 900M /root/file; for i in $(seq 20); do head -c 100M /dev/zero > /root/file-$i & done; wait",
  "makes names of files until its storage is full": python(
    'os.makedirs("/root/many")\nfd = unnamed(960)\nfor i in range(10**7):\n  name = "/root/many/%0200d" % i\n  os.symlink("x" * 3000, name)',
  ),
};
for (const [name, command] of Object.entries(refused)) {
  test(`on a volume, ${name}`, async () => {
    const [id, neighbour] = await Promise.all([sandboxes.make({ resources: { storage: 1 } }), sandboxes.make()]);
    const result = await api.execute(id, command, { timeout: 110 });
    assert.equal(result.error, undefined, JSON.stringify(result));
    assert.match(result.stderr, /Disk quota exceeded/);
    assert.equal((await api.execute(neighbour, "head -c 20M /dev/zero > /root/file && echo usable")).stdout, "usable\n");
    assert.equal((await api.execute(id, "rm -rf /root/* && echo x > /root/x && cat /root/x", { timeout: 110 })).stdout, "x\n");
  });
}

test("on a volume, looks for what other sandboxes store", async () => {
  const { stdout } = await api.execute(await sandboxes.make(), "find /sys/fs/btrfs -type f 2>/dev/null | wc -l");
  assert.equal(stdout, "0\n");
});

test("status counts a file without a name", async () => {
  const id = await sandboxes.make();
  const mark = new Mark();
  const running = api.execute(id, python("fd = unnamed(100)\ntime.sleep(100)"), { timeout: 110, env: mark.env });
  const diskOf = async (): Promise<number> => (await api.call<{ current: { disk_mb: number } }>("GET", `/v1/sandboxes/${id}/status`)).body.current.disk_mb;
  await until("the file counts", async () => (await diskOf()) >= 100);
  await api.execute(id, "pkill python3");
  await running;
  await until("it does not any more", async () => (await diskOf()) < 50);
});

/** Two sandboxes, one of which sleeps after it has written something, and writes a little all the time. */
async function besideAWriter(disk: SmallDisk, attack: string): Promise<{ attacker: ExecuteResult; asleep: ExecuteResult }> {
  await until("there is room", async () => (await disk.api.call("DELETE", `/v1/sandboxes/${await disk.api.create()}/delete`)).status === 200);
  const [attacker, other] = await Promise.all([disk.api.create(), disk.api.create()]);
  try {
    await disk.api.execute(other, "head -c 30M /dev/zero > /root/file");
    const mark = new Mark();
    const command = "for i in $(seq 1 200); do [ -s /root/file ] || exit 0; date >> /root/log; sleep 0.5; done; exit 1";
    const asleep = disk.api.execute(other, command, { timeout: 120, env: mark.env });
    // So that it has been looked at since it wrote what it has.
    await until("the other's command has run for a while", async () => Number((await disk.api.execute(other, "wc -l < /root/log")).stdout) >= 6);
    assert.ok(mark.living().length > 0);
    const result = await disk.api.execute(attacker, attack, { timeout: 110 });
    // What needs neither a block nor an inode.
    await disk.api.execute(other, ": > /root/file");
    return { attacker: result, asleep: await asleep };
  } finally {
    await Promise.all([disk.api.delete(attacker), disk.api.delete(other)]);
  }
}

const MiB = 1024 ** 2;
const disk = await fixture(
  SmallDisk.open({
    name: "floor",
    freeMiB: 400,
    freeInodes: 20_000,
    settings: { SANDGATE_DISK_FLOOR_BYTES: String(100 * MiB), SANDGATE_SNAPSHOT_ARCHIVE: "false" },
  }),
);

const floods: Record<string, { attack: string; reason: RegExp }> = {
  "brings the host's disk to its floor within its own size": {
    attack: "cat /dev/zero > /root/big; sleep 100",
    reason: /too little free disk space/,
  },
  "uses up the inodes of the host within its own number": {
    attack: python('os.mkdir("/root/many")\ni = 0\nwhile True:\n  open("/root/many/%d" % i, "w").close(); i += 1'),
    reason: /too few free inodes/,
  },
};
for (const [name, { attack, reason }] of Object.entries(floods)) {
  test(name, async () => {
    const { attacker, asleep } = await besideAWriter(disk, attack);
    // Where the disk is small, the flood may be through before it is looked at.
    assert.match(attacker.error ?? attacker.stderr, new RegExp(`${reason.source}|No space left`), JSON.stringify(attacker));
    assert.deepEqual([asleep.exit_code, asleep.error], [0, undefined], JSON.stringify(asleep));
  });
}
