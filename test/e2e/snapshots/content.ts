/** What restored sandboxes and clones hold: every kind of file as it was, over the image or over another one. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Api } from "../../helpers/api.ts";
import { expectError, expectOk } from "../../helpers/expect.ts";
import { fixture } from "../../helpers/fixture.ts";
import { isOnVolume, untilHostHas } from "../../helpers/host-state.ts";
import { plain } from "../../helpers/resilience.ts";
import { SnapshotCalls } from "../../helpers/snapshots.ts";
import { startStack } from "../../helpers/stack.ts";
import { assertSameFiles, describeSandbox, differences, makeEveryKind, runPython } from "../../helpers/trees.ts";
import { until } from "../../helpers/until.ts";

const otherImage = `localhost/sandgate-test/other-${process.pid}:latest`;

/** On an installation of its own with these settings. */
export async function contentTests(name: string, settings: Readonly<Record<string, string>>): Promise<void> {
  const stack = await fixture(startStack({ name, settings: { ...plain, SANDGATE_SNAPSHOT_ARCHIVE: "false", SANDGATE_LOCAL_IMAGES: otherImage, ...settings } }));
  const api = new Api(stack);
  const calls = new SnapshotCalls(api);
  const source = await api.create({ env_vars: { COLOUR: "blue" }, resources: { cpus: 1, memory: 512, storage: 4 }, network: { access: "none" } });
  await makeEveryKind(api, source);
  const files = await describeSandbox(api, source);

  test("every kind of file is in a restored sandbox and in a clone as it was, and the source stays as it is", async () => {
    assert.ok(files.length > 1_000 && files.some((line) => line.startsWith("[b'/root/tree/sparse'") && line.includes("holes of 312/4 MiB")));
    const snapshot = await calls.take(source);
    const restored = await calls.restored(snapshot.id);
    await assertSameFiles(api, restored.id, files);
    const { sandbox: clone, snapshot: ofRestored } = await calls.cloned(restored.id);
    await assertSameFiles(api, clone.id, files);
    await assertSameFiles(api, source, files);
    if (!isOnVolume(stack.worker)) assert.ok(ofRestored.size_bytes < snapshot.size_bytes, "the clone's snapshot has nothing but what its source changed");
    await Promise.all([restored.id, clone.id].map((id) => api.delete(id)));
    for (const { id } of [snapshot, ofRestored]) expectOk(await calls.delete(id));
  });

  test("the list says what deleting a snapshot frees, and what it shares", async () => {
    const bytes = 20_000_000;
    const id = await api.create();
    await api.execute(id, `head -c ${bytes} /dev/urandom > /root/large`);
    const first = await calls.take(id);
    const isNearly = (found: number | null, wanted: number): boolean => found !== null && found >= wanted && found < wanted + bytes / 4;
    const untilTakes = (exclusive: number, shared: number): Promise<unknown> =>
      until(`${exclusive} bytes are its own and ${shared} are shared`, async () => {
        const { exclusive_bytes, shared_bytes } = (await calls.list()).data.find((one) => one.id === first.id) ?? assert.fail();
        return isNearly(exclusive_bytes, exclusive) && isNearly(shared_bytes, shared);
      });
    // A copy is nobody else's; files that nobody has copied are still those of the sandbox.
    await (isOnVolume(stack.worker) ? untilTakes(0, bytes) : untilTakes(bytes, 0));
    const restored = await calls.restored(first.id);
    const second = await calls.take(restored.id);
    await untilTakes(0, bytes);
    await Promise.all([id, restored.id].map((each) => api.delete(each)));
    expectOk(await calls.delete(second.id));
    await untilTakes(bytes, 0);
    expectOk(await calls.delete(first.id));
  });

  test("so it is after a quick snapshot", async () => {
    const snapshot = await calls.take(source, { quick: true });
    const restored = await calls.restored(snapshot.id);
    await assertSameFiles(api, restored.id, files);
    await api.delete(restored.id);
    expectOk(await calls.delete(snapshot.id));
  });

  test("a restored sandbox is its own: what it changes, removes and links again is nowhere else", async () => {
    const snapshot = await calls.take(source);
    const [one, two] = await Promise.all([calls.restored(snapshot.id), calls.restored(snapshot.id)]);
    const changes = "cd /root/tree && echo more >> hard-1 && rm regular && mv folders moved && echo anew > /etc/issue && rm -r /etc/apt && chmod 700 /";
    assert.equal((await api.execute(one.id, changes)).exit_code, 0);
    await assertSameFiles(api, two.id, files);
    await assertSameFiles(api, source, files);
    const second = await calls.take(one.id);
    const again = await calls.restored(second.id);
    const changed = await describeSandbox(api, one.id);
    assert.ok(differences(files, changed).length > 10);
    await assertSameFiles(api, again.id, changed);
    await Promise.all([one, two, again].map(({ id }) => api.delete(id)));
    for (const { id } of [snapshot, second]) expectOk(await calls.delete(id));
  });

  test("a restored sandbox runs commands with the image's and the source's variables, resources and network access", async () => {
    const snapshot = await calls.take(source);
    const restored = await calls.restored(snapshot.id);
    const look =
      "env | grep -v -e ^HOSTNAME= -e ^container= | sort; pwd; id; ulimit -a; grep -e Cap -e NoNewPrivs -e Seccomp: /proc/self/status; cat /proc/net/dev | wc -l";
    const [before, after] = await Promise.all([source, restored.id].map((id) => api.execute(id, look)));
    assert.match(after?.stdout ?? "", /^COLOUR=blue$/m);
    assert.equal(after?.stdout, before?.stdout);
    const settings = ({ cpu, memory, storage, network, image }: Record<string, unknown>) => ({ cpu, memory, storage, network, image });
    const [original, copy] = await Promise.all([source, restored.id].map(async (id) => settings(expectOk(await api.call("GET", `/v1/sandboxes/${id}`)))));
    assert.deepEqual(copy, original);
    await api.delete(restored.id);
    expectOk(await calls.delete(snapshot.id));
  });

  test("another image under the changes: its files and variables, with the changes on top", async () => {
    const snapshot = await calls.take(source);
    await makeOtherImage();
    try {
      const restored = await calls.restored(snapshot.id, { image: otherImage });
      const look = "cat /of-the-other /root/moved | head -1; ls -d /etc/issue; stat -c %s /root/tree/regular; echo $FROM,$COLOUR; pwd";
      assert.equal((await api.execute(restored.id, look)).stdout, "other\n100000\nimage,blue\n/srv\n");
      const { sandbox: clone, snapshot: ofClone } = await calls.cloned(restored.id);
      assert.equal((await api.execute(clone.id, look)).stdout, "other\n100000\nimage,blue\n/srv\n");
      // Its working folder is the image's: without it the sandbox starts all the same.
      await api.execute(clone.id, "rm -r /srv", { working_dir: "/" });
      const without = await calls.take(clone.id);
      const last = await calls.restored(without.id);
      assert.equal((await api.execute(last.id, "echo $FROM", { working_dir: "/" })).stdout, "image\n");
      await Promise.all([restored, clone, last].map(({ id }) => api.delete(id)));
      for (const { id } of [ofClone, without]) expectOk(await calls.delete(id));
    } finally {
      await stack.podman("rmi", "--force", otherImage);
    }
    expectOk(await calls.delete(snapshot.id));
  });

  /** The default image with a file, a variable and a working folder more. */
  async function makeOtherImage(): Promise<void> {
    const container = `other-of-${source}`;
    await stack.podman("run", "--name", container, "--network", "none", "localhost/sandgate/default:latest", "sh", "-c", "echo other > /of-the-other");
    try {
      await stack.podman("commit", "--quiet", "--change", "ENV FROM=image", "--change", "WORKDIR /srv", container, otherImage);
    } finally {
      await stack.podman("rm", "--force", container);
    }
  }

  test("a thousand small files and one of 2 GiB with holes are restored whole", async () => {
    const big = await api.create({ resources: { cpus: 1, memory: 512, storage: 10 } });
    await runPython(api, big, bigProgram);
    const before = await describeSandbox(api, big);
    assert.ok(before.some((line) => line.includes("/root/big'") && line.includes("2147483648") && line.includes("holes of 7936/4 MiB")));
    const snapshot = await calls.take(big);
    assert.ok(snapshot.size_bytes < 100 * 1024 ** 2, "holes take no space");
    await api.delete(big);
    const restored = await calls.restored(snapshot.id);
    await assertSameFiles(api, restored.id, before);
    await api.delete(restored.id);
    expectOk(await calls.delete(snapshot.id));
  });

  const bigProgram = `
import os
os.mkdir("/root/small")
for n in range(1000):
    with open("/root/small/%d" % n, "w") as file: file.write("small file %d" % n)
with open("/root/big", "wb") as file:
    for n in range(64):
        file.seek(n * (32 << 20))
        file.write(os.urandom(1 << 20))
    file.truncate(2 << 30)
`;

  test("a snapshot outlives its source, and a storage that is too small for it is refused", async () => {
    const doomed = await api.create({ resources: { cpus: 1, memory: 128, storage: 3 } });
    await api.execute(doomed, "yes | head -c 1100M > /root/large; echo kept > /root/kept", { timeout: 120 });
    const snapshot = await calls.take(doomed);
    await api.delete(doomed);
    expectError(await calls.restore(snapshot.id, { resources: { storage: 1 } }), "unprocessable", /storage/);
    const restored = await calls.restored(snapshot.id);
    assert.equal((await api.execute(restored.id, "cat /root/kept; stat -c %s /root/large")).stdout, `kept\n${1100 * 1024 ** 2}\n`);
    await api.delete(restored.id);
    expectOk(await calls.delete(snapshot.id));
  });

  test("when all is deleted, nothing of it is left on the host", async () => {
    await api.delete(source);
    await untilHostHas(stack.worker, { layers: 0, roots: [] });
    assert.deepEqual(await stack.containers(), []);
  });
}
