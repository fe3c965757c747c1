/** A disk without room: what makes nothing new works, what would is refused, and nothing is forgotten. */
import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { fixture } from "../../helpers/fixture.ts";
import { SmallDisk } from "../../helpers/small-disk.ts";
import { SnapshotCalls } from "../../helpers/snapshots.ts";
import { until } from "../../helpers/until.ts";

const disk = await fixture(SmallDisk.open({ name: "full", freeMiB: 200, freeInodes: 12_000, settings: { SANDGATE_SNAPSHOT_ARCHIVE: "false" } }));
const calls = new SnapshotCalls(disk.api);
afterEach(() => disk.files.empty());

async function statusOf(id: string): Promise<number> {
  return (await disk.api.call("GET", `/v1/sandboxes/${id}`)).status;
}

for (const [what, fill] of Object.entries({ block: () => disk.files.fill(), inode: () => disk.files.fillInodes() })) {
  test(`sandboxes and snapshots are deleted on a disk without a free ${what}`, async () => {
    const { api } = disk;
    const sandbox = await api.create();
    await api.execute(sandbox, "head -c 20M /dev/zero > /root/file");
    const kept = await calls.take(sandbox, { name: "kept" });
    const { id: restored } = await calls.restored(kept.id);
    await fill();
    const refused = await calls.snapshot(sandbox, { name: "no-room" });
    assert.equal(refused.status, 507, JSON.stringify(refused.body));
    for (const path of [`/v1/sandboxes/${restored}/delete`, `/v1/snapshots/${kept.id}`, `/v1/sandboxes/${sandbox}/delete`]) {
      const { status, body } = await api.call("DELETE", path);
      assert.deepEqual([status, path], [200, path], JSON.stringify(body));
      // Whatever the deletion has freed is taken again.
      await fill();
    }
    assert.deepEqual([await statusOf(sandbox), await statusOf(restored)], [404, 404]);
    assert.deepEqual((await calls.list()).data, []);
    await until("the containers are gone", async () => (await disk.stack.containers()).length === 0);
    await disk.files.empty();
    const wanted = { image: "default" };
    const usable = await until("there is room again", async () => {
      const { status, body } = await api.call<{ id: string }>("POST", "/v1/sandboxes/create", wanted);
      return status === 201 ? body.id : undefined;
    });
    assert.equal((await api.execute(usable, "echo usable")).stdout, "usable\n");
    await api.call("DELETE", "/v1/sandboxes/delete-all");
  });
}
