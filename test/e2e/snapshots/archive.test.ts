/** What comes out of the archive on another worker is what was put in. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Api } from "../../helpers/api.ts";
import { depth, describeDeepTree, makeDeepTree } from "../../helpers/deep.ts";
import { expectOk } from "../../helpers/expect.ts";
import { fixture } from "../../helpers/fixture.ts";
import { isOnVolume, untilHostHas } from "../../helpers/host-state.ts";
import { listOf, plain, usable } from "../../helpers/resilience.ts";
import { lasting, openSnapshotBucket, SnapshotCalls } from "../../helpers/snapshots.ts";
import { startStack } from "../../helpers/stack.ts";
import { assertSameFiles, describeSandbox, differences, makeEveryKind } from "../../helpers/trees.ts";
import { until } from "../../helpers/until.ts";

const stack = await fixture(startStack({ name: "snap-archive", workers: 2, settings: plain }));
const api = new Api(stack);
const calls = new SnapshotCalls(api);
const workersPresent = async (): Promise<number> =>
  (await api.call<{ data: { present: boolean }[] }>("GET", "/v1/admin/workers")).body.data.filter(({ present }) => present).length;
await until("both workers", async () => (await workersPresent()) === 2);

async function workerOf(id: string): Promise<string> {
  const { data } = (await api.call<{ data: { id: string; worker_id: string }[] }>("GET", "/v1/admin/sandboxes?page_size=100")).body;
  return data.find((sandbox) => sandbox.id === id)?.worker_id ?? assert.fail("no such sandbox");
}

const processOf = (worker: string) => stack.workers.find(({ spec }) => spec.env.SANDGATE_WORKER_ID === worker) ?? assert.fail("no such worker");

/** Resolves when a snapshot can be restored without the worker that took it. */
async function untilArchived(id: string): Promise<void> {
  await using bucket = await openSnapshotBucket(stack.natsUrl);
  await until("the snapshot is archived", async () => (await bucket.read(id))?.archived === "done", 60_000);
}

/** The size of what was stored for this snapshot alone. */
async function storedBytes(id: string): Promise<number> {
  await using bucket = await openSnapshotBucket(stack.natsUrl);
  const { stored, layers } = (await bucket.read(id))?.manifest ?? assert.fail();
  return (stored ?? layers)[0]?.size_bytes ?? assert.fail();
}

/** Every way in which a file or folder can differ between two snapshots. */
const before = `
mkdir -p /root/kinds && cd /root/kinds && mkdir again other moved gone opaque was-folder
echo 1 > again/one; echo 1 > linked; ln linked link; ln linked third; echo 1 > was-file; echo 1 > was-folder/one; printf aaaa > in-place
rm -r /etc/apt && mkdir /etc/apt && echo 1 > /etc/apt/one && echo 2 > /etc/apt/two; rm /etc/issue; touch -d 2001-02-03T04:05:06.123456789 other
for name in grown cut replaced; do head -c 2000000 /root/large > $name; done; ln /root/large linked-large`;
const after = `
cd /root/kinds && rm -r again && mkdir again && echo 2 > again/two && rm linked && rm was-file && mkdir was-file && rm -r was-folder && ln -s /etc was-folder &&
printf bbbb > in-place && chmod 700 other && rmdir gone && mv moved moved-2 && rm /etc/apt/one && echo 3 > /etc/apt/three && echo 1 > /etc/issue && rm -rf /var/log/apt &&
mkdir /var/log/apt && printf x | dd of=/root/large bs=1 seek=4000000 conv=notrunc status=none && echo more >> grown && truncate -s 1500000 cut &&
printf x | dd of=cut bs=1 seek=77 conv=notrunc status=none && fallocate -p -o 400000 -l 400000 cut && rm replaced && mkdir replaced && touch -d 2001-02-03T04:05:06.987654321 other /root/kinds && setfattr -n user.mark -v 1 opaque 2>/dev/null; true`;

test("every kind of file comes back on another worker when the one that took the snapshot is dead; nothing is lost or doubled when it is back", async () => {
  const first = await api.create({ name: "first", env_vars: { COLOUR: "blue" } });
  const dead = processOf(await workerOf(first));
  await api.execute(first, "head -c 9000000 /dev/urandom > /root/large");
  await makeEveryKind(api, first);
  const base = await calls.take(first);
  // A second layer over the first.
  const source = (await calls.restored(base.id, { name: "source" })).id;
  assert.equal(await workerOf(source), await workerOf(first));
  await api.execute(
    source,
    "echo more > /root/more; rm -r /root/tree/deep /usr/share/doc; rm /root/tree/fifo; mkdir /root/tree/deep; chmod 4711 /root/tree/regular",
  );
  await api.execute(source, before);
  const middle = await calls.take(source);
  await untilArchived(middle.id);
  assert.equal((await api.execute(source, after)).exit_code, 0);
  const files = await describeSandbox(api, source);
  const snapshot = await calls.take(source);
  await untilArchived(snapshot.id);
  // What others are stored as a difference from stays in the archive without it.
  expectOk(await calls.delete(middle.id));
  await dead.kill9();

  const restored = await until("another worker restores it", async () => {
    const { status, body } = await calls.restore(snapshot.id, { name: "restored" });
    return status === 201 && body;
  });
  const other = processOf(await workerOf(restored.id));
  assert.notEqual(other, dead);
  // A socket is nothing without the process that listens, and is not archived.
  const unlike = differences(files, await describeSandbox(api, restored.id));
  assert.deepEqual(
    unlike.filter((line) => !line.startsWith("- [b'/root/tree/socket'")),
    [],
  );
  assert.equal((await api.execute(restored.id, "echo $COLOUR")).stdout, "blue\n");
  await untilHostHas(other, { layers: isOnVolume(other) ? 3 : 2, roots: [restored.id] });
  // Of large files, what has changed.
  if (isOnVolume(other)) assert.ok((await storedBytes(snapshot.id)) < 1_500_000);

  await dead.start();
  await Promise.all([first, source].map((id) => usable(api, id)));
  assert.deepEqual((await listOf(api)).map(({ name, status }) => `${name} ${status}`).sort(), ["first running", "restored running", "source running"]);
  assert.deepEqual((await calls.list()).data.map(lasting), [snapshot, base].map(lasting));
  await assertSameFiles(api, source, files);
  await api.delete(restored.id);
  await untilHostHas(other, { layers: 0, roots: [] });
  await untilHostHas(dead, { layers: 2, roots: [first, source] });
  for (const { id } of [base, snapshot]) expectOk(await calls.delete(id));
  await Promise.all([first, source].map((id) => api.delete(id)));
  await untilHostHas(dead, { layers: 0, roots: [] });
});

test(`a tree ${depth} deep comes back on another worker`, async () => {
  const source = await api.create();
  const dead = processOf(await workerOf(source));
  await api.execute(source, "mkdir -p /root/tree && chmod 1711 /root/tree && touch -d 2001-02-03 /root");
  await makeDeepTree(api, source, "/root/tree");
  const tree = await describeDeepTree(api, source, "/root/tree");
  const look = "ls -lA --time-style=full-iso / /root";
  const { stdout: top } = await api.execute(source, look);
  const snapshot = await calls.take(source);
  await untilArchived(snapshot.id);
  await dead.kill9();
  const restored = await until("another worker restores it", async () => {
    const { status, body } = await calls.restore(snapshot.id);
    return status === 201 && body;
  });
  const other = processOf(await workerOf(restored.id));
  assert.notEqual(other, dead);
  assert.equal(await describeDeepTree(api, restored.id, "/root/tree"), tree);
  const changing = / (dev|etc|proc|run|sys|tmp)$/;
  // The link count of /proc is that of the machine's processes, and with its digits all columns change their width.
  const lines = (text: string): string[] => text.split("\n").flatMap((line) => (changing.test(line) ? [] : line.replaceAll(/ +/g, " ")));
  assert.deepEqual(lines((await api.execute(restored.id, look)).stdout), lines(top));
  await api.delete(restored.id);
  await untilHostHas(other, { layers: 0, roots: [] });
  await dead.start();
  await usable(api, source);
  expectOk(await calls.delete(snapshot.id));
  await api.delete(source);
  await untilHostHas(dead, { layers: 0, roots: [] });
});
