/** Sandboxes on a volume: limits of the kernel, snapshots of full sandboxes, and sandboxes that were made before there was a volume. */
import assert from "node:assert/strict";
import { readdirSync, statfsSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { initPath } from "../../../worker/runtime/container/first-process.ts";
import { Store } from "../../../worker/store/store.ts";
import { Api } from "../../helpers/api.ts";
import { expectError, expectOk } from "../../helpers/expect.ts";
import { fixture } from "../../helpers/fixture.ts";
import { isOnVolume, untilHostHas } from "../../helpers/host-state.ts";
import { plain, usable, withSettings } from "../../helpers/resilience.ts";
import { SnapshotCalls } from "../../helpers/snapshots.ts";
import { startStack } from "../../helpers/stack.ts";
import { assertSameFiles, describeSandbox } from "../../helpers/trees.ts";
import { until } from "../../helpers/until.ts";

const GB = 1024 ** 3;
const blockBytes = 512; // the unit of stat(2)

const stack = await fixture(startStack({ name: "volume", settings: { ...plain, SANDGATE_SNAPSHOT_ARCHIVE: "false" } }));
const api = new Api(stack);
const calls = new SnapshotCalls(api);
const small = { resources: { cpus: 1, memory: 256, storage: 1 } };

const diskOf = async (id: string): Promise<number> =>
  (await api.call<{ current: { disk_mb: number } }>("GET", `/v1/sandboxes/${id}/status`)).body.current.disk_mb;
/** Most of it without writing, which is what takes time. */
const fill = "fallocate -l 1000M /root/large; head -c 100M /dev/zero >> /root/large; echo $?; echo on; rm -f /root/other; echo x > /root/other";

test("the tests run on a volume", () => {
  assert.ok(isOnVolume(stack.worker));
});

test("a program that writes more than the sandbox's storage gets an error, goes on, and can make room", async () => {
  const id = await api.create(small);
  const { stdout, stderr, exit_code } = await api.execute(id, fill, { timeout: 100 });
  assert.deepEqual([stdout, exit_code], ["1\non\n", 2]);
  assert.match(stderr, /Disk quota exceeded/);
  const full = await diskOf(id);
  assert.ok(full > 1000 && full <= 1024, `${full} MB`);
  assert.equal((await api.execute(id, "rm /root/large && echo y > /root/small && cat /root/small")).stdout, "y\n");
  await until("the space is free", async () => (await diskOf(id)) < 50);
  await api.delete(id);
});

test("a deleted open file counts, and so do the names of empty files", async () => {
  const id = await api.create(small);
  const hold = "fallocate -l 1000M /root/gone; exec 3>> /root/gone; rm /root/gone; head -c 100M /dev/zero >&3";
  const held = await api.execute(id, hold, { timeout: 100 });
  assert.match(held.stderr, /Disk quota exceeded/);
  await until("it does not count any more", async () => (await diskOf(id)) < 50);
  await api.execute(id, "mkdir /root/many && cd /root/many && seq -f %0200.0f 20000 | xargs touch", { timeout: 100 });
  await until("they count", async () => (await diskOf(id)) > 10);
  await api.delete(id);
});

test("a full sandbox can be copied, comes back when its container or its worker has stopped, and can then make room", async () => {
  const id = await api.create(small);
  await api.execute(id, `echo kept > /root/kept; ${fill}`, { timeout: 100 });
  const snapshot = await calls.take(id);
  assert.ok(snapshot.size_bytes > 0.9 * GB && snapshot.size_bytes <= GB, `${snapshot.size_bytes}`);
  const copy = (await calls.restored(snapshot.id)).id;
  await stack.worker.kill9();
  for (const container of await stack.containers()) await stack.endContainer(container);
  await stack.worker.start();
  await stack.ready();
  for (const each of [id, copy]) {
    await usable(api, each);
    assert.match((await api.execute(each, "head -c 10M /dev/zero > /root/more")).stderr, /Disk quota exceeded/);
    assert.equal((await api.execute(each, "rm /root/large && cat /root/kept && head -c 10M /dev/zero > /root/more && echo more")).stdout, "kept\nmore\n");
  }
  await Promise.all([id, copy].map((each) => api.delete(each)));
  expectOk(await calls.delete(snapshot.id));
});

test("no program outruns the growth of the volume, however fast it takes what its sandbox may have", async () => {
  const look = (): { size: number; free: number } => {
    const { blocks, bavail, bsize } = statfsSync(stack.worker.spec.env.SANDGATE_VOLUME_DIR ?? "");
    return { size: blocks * bsize, free: bavail * bsize };
  };
  const before = look();
  const storage = Math.ceil(before.free / GB) + 1;
  const id = await api.create({ resources: { cpus: 1, memory: 256, storage } });
  const { stdout, stderr } = await api.execute(id, `fallocate -l ${before.free + 0.5 * GB} /root/large && echo done`);
  assert.deepEqual([stdout, stderr], ["done\n", ""]);
  assert.ok(look().size > before.size);
  await api.delete(id);
});

test("without the volume its sandboxes are errors, not empty, and with it they are back, also if their containers went with the machine", async () => {
  const [id, other] = [await api.create(), await api.create()];
  for (const each of [id, other]) await api.execute(each, "echo kept > /root/kept");
  const snapshot = await calls.take(id);
  await stack.worker.kill9();
  await stack.endContainer(await stack.containerOf(id));
  await stack.removeContainer(await stack.containerOf(other));
  const without = withSettings(stack.worker, { SANDGATE_VOLUME_DIR: "" });
  await without.start();
  await stack.ready();
  for (const each of [id, other]) assert.equal((await api.call<{ status: string }>("GET", `/v1/sandboxes/${each}`)).body.status, "error");
  expectError(await calls.restore(snapshot.id), "unavailable");
  await without.kill9();
  await stack.worker.start();
  await stack.ready();
  for (const each of [id, other, (await calls.restored(snapshot.id)).id]) {
    await usable(api, each);
    assert.equal((await api.execute(each, "cat /root/kept")).stdout, "kept\n");
    await api.delete(each);
  }
  expectOk(await calls.delete(snapshot.id));
});

/** Replaces a stopped worker's sandbox by one as early versions had Podman make it from an image, and its record by theirs. */
async function remakeByPodman(id: string): Promise<void> {
  const { SANDGATE_WORKER_ID: worker = "", SANDGATE_DATA_DIR: dataDir = "" } = stack.worker.spec.env;
  const container = await stack.containerOf(id);
  const format = '{{index .Config.Labels "sandgate.image"}} {{range .Mounts}}{{if eq .Type "bind"}}--volume={{.Source}}:{{.Destination}}:ro {{end}}{{end}}';
  const [image = "", ...volumes] = (await stack.containerPodman(["inspect", "--format", format, container.id])).trim().split(" ");
  await stack.removeContainer(container);
  const labels = [`--label=sandgate.worker=${worker}`, `--label=sandgate.sandbox=${id}`];
  const options = ["--pull=never", "--network=none", "--cap-drop=all", "--cap-add=CHOWN,DAC_OVERRIDE,FOWNER", `--entrypoint=["${initPath}"]`];
  const made = await stack.podman("run", "--detach", `--name=sandgate-${id}`, ...labels, ...options, ...volumes, image, "-P");
  const store = new Store(join(dataDir, "worker/lmdb"));
  const { root: _, ...record } = store.sandboxes().find((one) => one.id === id) ?? assert.fail();
  await store.putSandbox({ ...record, container_id: made.trim() });
  await store.close();
}

test("a sandbox that Podman made from its image goes on, and its snapshots are on the volume", async () => {
  const id = await api.create({ network: { access: "none" } });
  await stack.worker.kill9();
  await remakeByPodman(id);
  await stack.worker.start();
  await stack.ready();
  await usable(api, id);
  await api.execute(id, "echo one > /root/one; rm -r /etc/apt; chmod 700 /srv; ln /root/one /root/link");
  const files = await describeSandbox(api, id);
  const snapshot = await calls.take(id);
  const { sandbox: clone } = await calls.cloned(id);
  const restored = (await calls.restored(snapshot.id)).id;
  for (const each of [clone.id, restored]) await assertSameFiles(api, each, files);
  const { exclusive_bytes } = (await calls.list()).data.find((one) => one.id === snapshot.id) ?? assert.fail();
  assert.ok(exclusive_bytes !== null && exclusive_bytes < 1024 ** 2);
  await api.delete(id);
  await assertSameFiles(api, restored, files);
  assert.match((await api.execute(restored, "fallocate -l 100G /root/large")).stderr, /Disk quota exceeded/);
  await Promise.all([clone.id, restored].map((each) => api.delete(each)));
  expectOk(await calls.deleteAll());
  await untilHostHas(stack.worker, { layers: 0, roots: [] });
});

test("sandboxes and snapshots that were made before there was a volume stay, and go on with one", async () => {
  await stack.worker.kill9();
  const before = withSettings(stack.worker, { SANDGATE_VOLUME_DIR: "" });
  await before.start();
  await stack.ready();
  const source = await api.create();
  await api.execute(source, "echo one > /root/one; rm -r /etc/apt");
  const former = await calls.take(source);
  const restored = (await calls.restored(former.id)).id;
  await api.execute(restored, "echo two > /root/two; mkdir /etc/apt; rm /root/one");
  const files = await describeSandbox(api, restored);
  await before.kill9();
  for (const container of await stack.containers()) await stack.endContainer(container);
  await stack.worker.start();
  await stack.ready();
  for (const each of [source, restored]) await usable(api, each);
  await assertSameFiles(api, restored, files);

  const later = await calls.take(restored);
  const again = (await calls.restored(later.id)).id;
  await assertSameFiles(api, again, files);
  const last = await calls.take(again);
  for (const { id } of [former, later]) expectOk(await calls.delete(id));
  await Promise.all([source, restored, again].map((each) => api.delete(each)));
  const end = (await calls.restored(last.id)).id;
  await assertSameFiles(api, end, files);
  await api.delete(end);
  expectOk(await calls.delete(last.id));
  await untilHostHas(stack.worker, { layers: 0, roots: [] });
});

test("nobody can change the files of a snapshot, and they can be restored from and deleted", async () => {
  const id = await api.create(small);
  await api.execute(id, "echo kept > /root/kept");
  const { id: snapshot } = await calls.take(id);
  const { SANDGATE_VOLUME_DIR: volume = "", SANDGATE_WORKER_ID: worker = "" } = stack.worker.spec.env;
  const layers = join(volume, worker, "layers");
  const [layer = assert.fail("it has a layer")] = readdirSync(layers);
  assert.throws(() => writeFileSync(join(layers, layer, "planted"), ""), { code: "EROFS" });
  const copy = (await calls.restored(snapshot)).id;
  assert.equal((await api.execute(copy, "echo more >> /root/kept && cat /root/kept")).stdout, "kept\nmore\n");
  await Promise.all([id, copy].map((each) => api.delete(each)));
  expectOk(await calls.delete(snapshot));
  await untilHostHas(stack.worker, { layers: 0, roots: [] });
});

test("what deleted sandboxes and snapshots took goes back to the disk below the volume", async () => {
  const bytes = 300 * 1024 ** 2;
  const { SANDGATE_VOLUME_DIR: volume = "" } = stack.worker.spec.env;
  const stored = (): number => statSync(join(dirname(volume), "volume.img")).blocks * blockBytes;
  const id = await api.create(small);
  const { exit_code, stderr } = await api.execute(id, `head -c ${bytes} /dev/urandom > /root/large && sync`, { timeout: 100 });
  assert.deepEqual([exit_code, stderr], [0, ""]);
  const { id: snapshot } = await calls.take(id);
  assert.ok(stored() > bytes);
  await api.delete(id);
  expectOk(await calls.delete(snapshot));
  // What earlier tests have deleted goes back meanwhile, too; the volume itself takes some 50 MB.
  await until("the disk has it back", () => stored() < bytes / 2, 120_000);
});

test("sizes of a chain of snapshots are those that the kernel counts, also when the middle one is deleted", async () => {
  const [mib, slackBytes] = [1024 ** 2, 512 * 1024];
  const id = await api.create(small);
  const chain: string[] = [];
  for (const changes of ["a=10", "b=5", "a=10 c=3"]) {
    for (const [name, size] of changes.split(" ").map((change) => change.split("="))) {
      await api.execute(id, `rm -f /root/${name}; head -c ${size}M /dev/urandom > /root/${name}`);
    }
    chain.push((await calls.take(id)).id);
  }
  await api.delete(id);
  const untilTheyTake = (wanted: Readonly<Record<string, readonly number[]>>): Promise<unknown> =>
    until(`they take ${JSON.stringify(wanted)} MiB`, async () => {
      const { data } = await calls.list();
      const isRight = (found: number | null, size = 0): boolean => found !== null && found >= size * mib && found < size * mib + slackBytes;
      return data.every((one) => isRight(one.exclusive_bytes, wanted[one.id]?.[0]) && isRight(one.shared_bytes, wanted[one.id]?.[1]));
    });
  const [first = "", middle = "", last = ""] = chain;
  await untilTheyTake({ [first]: [0, 10], [middle]: [0, 15], [last]: [13, 5] });
  expectOk(await calls.delete(middle));
  await untilTheyTake({ [first]: [10, 0], [last]: [18, 0] });
  for (const each of [first, last]) expectOk(await calls.delete(each));
});
