/** The client library against a real installation: every call, pages, disposal. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ConflictError, NotFoundError, Sandgate, UnprocessableEntityError } from "../../../shared/client/index.ts";
import { openClient } from "../../helpers/client.ts";
import { fixture } from "../../helpers/fixture.ts";
import { until } from "../../helpers/until.ts";

const { account, client } = await fixture(openClient());

test("a sandbox is made, used, looked at and deleted", async () => {
  const made = await client.sandboxes.create({
    name: "whole",
    resources: { cpus: 1, memory: 256 },
    env_vars: { GREETING: "hello" },
    network: { access: "none" },
  });
  assert.deepEqual([made.name, made.info.status, made.info.memory, made.info.network.access], ["whole", "running", 256, "none"]);
  const result = await made.execute("echo $GREETING $NAME in $PWD; echo oops >&2; exit 3", { env: { NAME: "you" }, working_dir: "/tmp", timeout: 20 });
  assert.deepEqual([result.status, result.exit_code, result.stdout, result.stderr], ["completed", 3, "hello you in /tmp\n", "oops\n"]);
  assert.equal((await client.sandbox(made.id).execute("sleep 60", { timeout: 1 })).status, "timeout");
  const usage = await made.status();
  assert.equal(usage.sandbox_name, "whole");
  // An execution is logged as ended behind its answer.
  const logs = await until("both are logged whole", async () => {
    const { logs } = await made.logs({ limit: 5 });
    return logs.every(({ status }) => status !== "running") && logs;
  });
  assert.deepEqual(
    logs.map(({ exit_code }) => exit_code),
    [124, 3],
  );
  assert.deepEqual((await client.sandboxes.logs({ sandbox_id: made.id })).total, 2);
  assert.equal((await client.sandboxes.get(made.id)).info.name, "whole");
  assert.equal((await made.refresh()).info.status, "running");
  assert.deepEqual(await made.delete(), { id: made.id, message: "Sandbox deleted", storage_deleted: true });
  const error = await made.execute("true").catch((thrown: NotFoundError) => thrown);
  assert.ok(error instanceof NotFoundError && error.status === 404 && error.code === "not_found" && error.reason === "no_such_sandbox");
  assert.match(error.requestId ?? "", /^req_\w+$/);
  assert.equal(error.headers?.get("x-request-id"), error.requestId);
});

test("snapshots are taken, listed, restored, cloned from and deleted", async () => {
  const source = await client.sandboxes.create({ name: "source" });
  await source.upload("/work/kept.txt", "kept");
  const snapshot = await source.snapshot({ name: "first" });
  assert.deepEqual([snapshot.name, snapshot.info.status, snapshot.info.source_sandbox_id], ["first", "ready", source.id]);
  const restored = await snapshot.restore({ name: "again", resources: { memory: 256 } });
  assert.equal(await (await restored.download("/work/kept.txt")).text(), "kept");
  const copies = await source.fork({ count: 2, name: "many", memory: "skip" });
  assert.deepEqual(
    copies.map(({ sandbox, error }) => [sandbox?.name, sandbox?.info.memory_reason, error]),
    [
      ["many-1", null, undefined],
      ["many-2", null, undefined],
    ],
  );
  for (const { sandbox } of copies) {
    assert.equal(await (await sandbox?.download("/work/kept.txt"))?.text(), "kept");
    await sandbox?.delete();
  }
  const { sandbox, snapshot: between } = await source.clone({ name: "copy", snapshot_name: "between" });
  assert.deepEqual([sandbox.name, between.name], ["copy", "between"]);
  assert.equal((await client.snapshots.get(between.id)).name, "between");
  assert.deepEqual(
    (await client.snapshots.list().all()).map(({ name }) => name),
    ["between", "first"],
  );
  assert.equal((await between.delete()).name, "between");
  const last = await sandbox.delete({ create_snapshot: true, snapshot_name: "last" });
  assert.deepEqual([last.snapshot_created, last.snapshot_name], [true, "last"]);
  assert.equal((await client.snapshots.deleteAll()).deleted_count, 2);
  assert.deepEqual((await client.sandboxes.deleteAll()).deleted_ids.sort(), [source.id, restored.id].sort());
  assert.deepEqual(await client.sandboxes.list().all(), []);
});

test("the same Idempotency-Key makes one sandbox, and another request under it is a conflict", async () => {
  const options = { name: "once", idempotencyKey: `key ${Date.now()}` };
  const [one, other] = [await client.sandboxes.create(options), await client.sandboxes.create(options)];
  assert.equal(one.id, other.id);
  await assert.rejects(client.sandboxes.create({ ...options, name: "twice" }), ConflictError);
  await one.delete();
});

test("a sandbox that is not waited for is ready later; one that cannot be is told", async () => {
  const made = await client.sandboxes.create({ wait_for_ready: false });
  assert.equal((await made.waitForReady()).status, "running");
  await made.delete();
  await assert.rejects(made.waitForReady(), NotFoundError);
  await assert.rejects(client.sandboxes.create({ image: "localhost/no/such:image" }), UnprocessableEntityError);
});

test("a list goes through all pages, also while its items are deleted", async () => {
  const ids = await Promise.all(Array.from({ length: 5 }, async () => (await client.sandboxes.create()).id));
  const page = await client.sandboxes.list({ pageSize: 2 }).page(2);
  assert.deepEqual([page.data.length, page.pagination], [2, { page: 2, page_size: 2, total_items: 5, total_pages: 3 }]);
  const seen: string[] = [];
  for await (const sandbox of client.sandboxes.list({ pageSize: 2 })) {
    seen.push(sandbox.id);
    await sandbox.delete();
  }
  assert.deepEqual(seen.sort(), ids.sort());
});

test("await using deletes at the end of the block, also what is gone already", async () => {
  let id = "";
  {
    await using sandbox = await client.sandboxes.create();
    id = sandbox.id;
    assert.equal((await sandbox.execute("echo in")).stdout, "in\n");
  }
  await assert.rejects(client.sandboxes.get(id), NotFoundError);
  await using gone = await client.sandboxes.create();
  await gone.delete();
});

test("what a key may know of its account", async () => {
  const { account: shown } = await client.account.get();
  assert.deepEqual([shown.id, shown.tier], [account.id, "enterprise"]);
  assert.equal((await client.account.keys()).length, 1);
  assert.ok((await client.account.usage()).keys.some(({ requests }) => requests.remaining > 0));
});

test("a program may bring a fetch of its own", async () => {
  const paths: string[] = [];
  const { url: baseUrl, apiKey } = account.api;
  const fetch: typeof globalThis.fetch = (input, init) => {
    paths.push(new URL(String(input)).pathname);
    return globalThis.fetch(input, init);
  };
  const own = new Sandgate({ apiKey, baseUrl: `${baseUrl}/`, fetch });
  await using sandbox = await own.sandboxes.create();
  await sandbox.upload("/work/a", new Blob(["streamed"]).stream());
  assert.equal(await (await sandbox.download("/work/a")).text(), "streamed");
  assert.equal(await sandbox.executeAsync("exit 4").result.then(({ exit_code }) => exit_code), 4);
  assert.deepEqual(paths[0], "/v1/sandboxes/create");
  assert.equal(paths.length, 4);
});
