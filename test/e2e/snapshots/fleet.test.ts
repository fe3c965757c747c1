/** Which worker does what with snapshots when there are two, and one of them is full or gone. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Api } from "../../helpers/api.ts";
import { expectError, expectOk } from "../../helpers/expect.ts";
import { fixture } from "../../helpers/fixture.ts";
import { plain, usable } from "../../helpers/resilience.ts";
import { openSnapshotBucket, SnapshotCalls } from "../../helpers/snapshots.ts";
import { startStack } from "../../helpers/stack.ts";
import { until } from "../../helpers/until.ts";

// So slow that a large snapshot is certainly not archived while the test looks.
const settings = { ...plain, SANDGATE_SNAPSHOT_ARCHIVE_BYTES_PER_S: "65536", SANDGATE_SNAPSHOT_ARCHIVE_IMAGES: "false" };

const stack = await fixture(startStack({ name: "snap-fleet", workers: 2, settings }));
const api = new Api(stack);
const calls = new SnapshotCalls(api);
const bucket = await fixture(openSnapshotBucket(stack.natsUrl));
const workers = async () => (await api.call<{ data: { id: string; present: boolean; cordoned: boolean }[] }>("GET", "/v1/admin/workers")).body.data;
await until("both workers", async () => (await workers()).filter(({ present }) => present).length === 2);
const source = await api.create({ name: "source" });
const owner = await workerOf(source);
await api.execute(source, "echo small > /root/marker");
const archived = await calls.take(source, { name: "archived" });
await until("the small snapshot is archived", async () => (await bucket.read(archived.id))?.archived === "done");
await api.execute(source, "head -c 20000000 /dev/urandom > /root/large");
const pending = await calls.take(source, { name: "pending" });

async function workerOf(id: string): Promise<string> {
  const { data } = (await api.call<{ data: { id: string; worker_id: string }[] }>("GET", "/v1/admin/sandboxes?page_size=100")).body;
  return data.find((sandbox) => sandbox.id === id)?.worker_id ?? assert.fail("no such sandbox");
}

async function drain(on: boolean): Promise<void> {
  expectOk(await api.call("POST", `/v1/admin/workers/${owner}/drain`, { on }));
  await until("the gateway knows", async () => (await workers()).find(({ id }) => id === owner)?.cordoned === on);
}

const ownerProcess = () => stack.workers.find(({ spec }) => spec.env.SANDGATE_WORKER_ID === owner) ?? assert.fail("no such worker");
const smallMarker = async (id: string): Promise<void> => assert.equal((await api.execute(id, "cat /root/marker")).stdout, "small\n");

test("the worker that took a snapshot restores it, as often as one likes", async () => {
  const made = await Promise.all([archived, pending, archived].map(({ id }) => calls.restored(id)));
  for (const { id } of made) {
    assert.equal(await workerOf(id), owner);
    await smallMarker(id);
    await api.delete(id);
  }
});

test("when it takes no new sandboxes another one restores what is archived, and nobody the rest", async () => {
  await drain(true);
  const { id } = await calls.restored(archived.id, { name: "elsewhere" });
  assert.notEqual(await workerOf(id), owner);
  await smallMarker(id);
  await api.delete(id);
  expectError(await calls.restore(pending.id), "unavailable", /worker that took this snapshot has no room.* not archived yet/);
  const count = (await calls.list()).data.length;
  expectError(await calls.clone(source), "unavailable", /no room/);
  assert.equal((await calls.list()).data.length, count, "no snapshot was taken for a clone that nobody could make");
  const { id: plainSnapshot } = await calls.take(source);
  expectOk(await calls.delete(plainSnapshot));
  await drain(false);
});

test("when it is gone another one restores and deletes what it can, and what is deleted stays so when it is back", async () => {
  const doomed = await calls.take(source, { name: "doomed", quick: true });
  await ownerProcess().kill9();
  const { id } = await until("another worker restores it", async () => {
    const { status, body } = await calls.restore(archived.id);
    return status === 201 && body;
  });
  assert.notEqual(await workerOf(id), owner);
  await smallMarker(id);
  expectError(await calls.restore(pending.id), "unavailable", /worker that took this snapshot is gone.* not archived yet/);
  for (const answer of [await calls.snapshot(source), await calls.clone(source)]) expectError(answer, "unavailable", /gone/);
  expectError(await api.call("DELETE", `/v1/sandboxes/${source}/delete`, { create_snapshot: true }), "unavailable");

  for (const snapshot of [doomed, archived]) {
    assert.equal(expectOk(await calls.delete(snapshot.id)).name, snapshot.name);
    expectError(await calls.delete(snapshot.id), "not_found");
    expectError(await calls.get(snapshot.id), "not_found");
  }
  assert.deepEqual(
    (await calls.list()).data.map(({ name }) => name),
    ["pending"],
  );
  await smallMarker(id);

  await ownerProcess().start();
  await usable(api, source);
  await until("the worker has dropped what was deleted", async () => !(await bucket.read(doomed.id)) && !(await bucket.read(archived.id)));
  for (const snapshot of [doomed, archived]) expectError(await calls.restore(snapshot.id), "not_found");
  const again = await calls.restored(pending.id);
  assert.equal(await workerOf(again.id), owner);
  await smallMarker(again.id);
});

test("a snapshot that is deleted while its worker stands still is dropped when that goes on", async () => {
  const stopped = await calls.take(source, { name: "stopped", quick: true });
  const isOwnerThere = async (): Promise<boolean | undefined> => (await workers()).find(({ id }) => id === owner)?.present;
  ownerProcess().signal("SIGSTOP");
  try {
    await until("it is taken for gone", async () => !(await isOwnerThere()));
    expectOk(await calls.delete(stopped.id));
    assert.equal((await bucket.read(stopped.id))?.status, "deleting");
  } finally {
    ownerProcess().signal("SIGCONT");
  }
  await until("it is there again", isOwnerThere);
  await until("the worker has dropped what was deleted", async () => !(await bucket.read(stopped.id)));
});

test("a snapshot can be deleted when there is no worker at all", async () => {
  await Promise.all(stack.workers.map((worker) => worker.kill9()));
  await until("both are gone", async () => (await workers()).every(({ present }) => !present));
  expectOk(await calls.delete(pending.id));
  expectError(await calls.get(pending.id), "not_found");
});
