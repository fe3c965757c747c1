/** Trees that are deeper than a path may be long, and files that are not whole yet. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Api } from "../../helpers/api.ts";
import { fixture } from "../../helpers/fixture.ts";
import { startEndlessUpload } from "../../helpers/resilience.ts";
import { Sandboxes } from "../../helpers/sandboxes.ts";
import { sharedStack } from "../../helpers/shared.ts";
import { SnapshotCalls } from "../../helpers/snapshots.ts";
import { until } from "../../helpers/until.ts";

const api = new Api(sharedStack());
const sandboxes = fixture(new Sandboxes(api));
const calls = new SnapshotCalls(api);

const depth = 3000;
const make = `python3 -c 'import os
os.chdir("/root")
for i in range(${depth}): os.mkdir("deepdeepdeep"); os.chdir("deepdeepdeep")
open("end", "w").write("end")'`;
const read = `python3 -c 'import os
os.chdir("/root")
for i in range(${depth}): os.chdir("deepdeepdeep")
print(open("end").read())'`;

/** The least that btrfs takes for one. */
const bytesPerFolder = 200;

/** The MiB that a sandbox uses. The kernel counts what was written when it stores it, by itself only every half a minute. */
async function stored(id: string): Promise<number> {
  await api.execute(id, "sync");
  return (await api.call<{ current: { disk_mb: number } }>("GET", `/v1/sandboxes/${id}/status`)).body.current.disk_mb;
}

for (const quick of [false, true]) {
  test(`a tree ${depth} deep is measured, kept${quick ? " quickly" : ""}, restored and deleted`, async () => {
    const id = await sandboxes.make();
    const before = await stored(id);
    await api.execute(id, make, { timeout: 60 });
    await until("all of it is counted", async () => (await stored(id)) > before + (depth * bytesPerFolder) / 1024 ** 2);
    const snapshot = await calls.take(id, { quick });
    const restored = await calls.restored(snapshot.id);
    assert.equal((await api.execute(restored.id, read)).stdout, "end\n");
    assert.equal((await api.call("DELETE", `/v1/sandboxes/${restored.id}/delete`)).status, 200);
    assert.equal((await api.call("DELETE", `/v1/snapshots/${snapshot.id}`)).status, 200);
    assert.equal((await api.call("DELETE", `/v1/sandboxes/${id}/delete`)).status, 200);
  });
}

test("the files of an upload that is under way are not in a snapshot", async () => {
  const id = await sandboxes.make();
  await api.execute(id, "echo kept > /tmp/.sandgate-upload-of-mine");
  const { ended } = await startEndlessUpload(api, id, "/root/file");
  await until("the upload writes", async () => (await api.execute(id, "ls -A /tmp")).stdout.includes(".sandgate-upload-req"));
  const snapshot = await calls.take(id, {});
  const restored = await calls.restored(snapshot.id);
  assert.equal((await api.execute(restored.id, "ls -A /tmp")).stdout, ".sandgate-upload-of-mine\n");
  await api.delete(restored.id);
  await api.delete(id);
  await ended;
  await api.call("DELETE", `/v1/snapshots/${snapshot.id}`);
});
