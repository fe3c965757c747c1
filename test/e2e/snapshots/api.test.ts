/** Snapshots over HTTP: take, list, get, delete, delete-all. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { newId } from "../../../shared/util/ids.ts";
import { Accounts } from "../../helpers/accounts.ts";
import { expectError, expectOk } from "../../helpers/expect.ts";
import { fixture } from "../../helpers/fixture.ts";
import { sharedStack } from "../../helpers/shared.ts";
import { openSnapshotBucket, SnapshotCalls } from "../../helpers/snapshots.ts";
import { until } from "../../helpers/until.ts";

const accounts = await fixture(Accounts.open(sharedStack()));
const account = await accounts.make();
const api = account.api;
const calls = new SnapshotCalls(api);
const other = new SnapshotCalls((await accounts.make("other")).api);
const sandbox = await api.create({ name: "source" });

/** A sandbox that cannot be started. */
async function brokenSandbox(): Promise<string> {
  const { id } = expectOk(await api.call<{ id: string }>("POST", "/v1/sandboxes/create", { image: "localhost/no-such-image", wait_for_ready: false }), 201);
  await until("the sandbox is in state error", async () => (await api.call("GET", `/v1/sandboxes/${id}`)).body.status === "error");
  return id;
}

test("a snapshot that says nothing has a name made from its sandbox's, and is ready when it is answered", async () => {
  const before = Date.now();
  const snapshot = await calls.take(sandbox);
  const { id, name, created_at, size_bytes, exclusive_bytes, shared_bytes, memory, memory_reason, pause_ms, ...rest } = snapshot;
  assert.deepEqual(rest, { source_sandbox_id: sandbox, source_sandbox_name: "source", status: "ready", consistency: "application" });
  assert.ok(memory !== Boolean(memory_reason), "with memory, or with the reason why not");
  assert.ok(pause_ms > 0, "the processes stood still");
  assert.match(name, /^source-snap-[0-9a-z]{4,}$/);
  assert.ok(Date.parse(created_at) >= before - 1_000 && Date.parse(created_at) <= Date.now() + 1_000);
  assert.deepEqual(expectOk(await calls.get(id)), snapshot, "get shows what the call answered");
  assert.deepEqual((await calls.list()).data[0], snapshot, "list shows it first");
});

test("a body may be left out", async () => {
  const answer = await api.call<{ id: string }>("POST", `/v1/sandboxes/${sandbox}/snapshot`);
  expectOk(await calls.delete(expectOk(answer, 201).id));
});

test("a quick one says that it is crash-consistent; names need not be unique", async () => {
  const first = await calls.take(sandbox, { name: "twin_1.a-b", quick: true });
  const second = await calls.take(sandbox, { name: "twin_1.a-b", quick: false });
  assert.deepEqual([first.name, first.consistency, second.name, second.consistency], ["twin_1.a-b", "crash", "twin_1.a-b", "application"]);
  assert.ok(first.id < second.id);
});

test("a name made from one of full length keeps to the bound", async () => {
  const long = await api.create({ name: `${"a".repeat(20)}${"-".repeat(43)}` });
  const { name } = await calls.take(long);
  assert.match(name, /-snap-[0-9a-z]+$/);
  assert.ok(name.length <= 63);
  const { sandbox: clone } = await calls.cloned(long);
  assert.match(clone.name, /^a{20}-+clone-[0-9a-z]+$/);
  await Promise.all([api.delete(long), api.delete(clone.id)]);
});

test("size_bytes is what the sandbox has changed", async () => {
  await api.execute(sandbox, "head -c 5000000 /dev/urandom > /root/five");
  const { size_bytes } = await calls.take(sandbox);
  assert.ok(size_bytes >= 5_000_000 && size_bytes < 8_000_000, `${size_bytes}`);
});

const refused: [string, unknown, RegExp][] = [
  ["a name with a space", { name: "a b" }, /^name must be 1 to 63 characters/],
  ["an empty name", { name: "" }, /^name must be/],
  ["a name that is too long", { name: "a".repeat(64) }, /^name must be/],
  ["quick as text", { quick: "yes" }, /^quick must be true or false$/],
  ["a body that is a list", [], /object/],
];
for (const [what, body, message] of refused) {
  test(`${what} is refused with the name of the field`, async () => void expectError(await calls.snapshot(sandbox, body), "invalid_request", message));
}

test("what is not there, or another account's, is not found", async () => {
  const { id } = await calls.take(sandbox);
  for (const missing of [newId("sandbox"), "sb_nonsense", newId("snapshot")]) {
    expectError(await calls.snapshot(missing), "not_found", /^Sandbox not found/);
    expectError(await calls.clone(missing), "not_found", /^Sandbox not found/);
  }
  for (const missing of [newId("snapshot"), "snap_nonsense", sandbox]) {
    for (const answer of [await calls.get(missing), await calls.delete(missing), await calls.restore(missing)])
      expectError(answer, "not_found", `Snapshot not found: ${missing}`);
  }
  const message = `Snapshot not found: ${id}`;
  for (const answer of [await other.get(id), await other.delete(id), await other.restore(id)]) expectError(answer, "not_found", message);
  for (const answer of [await other.snapshot(sandbox), await other.clone(sandbox)]) expectError(answer, "not_found", `Sandbox not found: ${sandbox}`);
  assert.deepEqual((await other.list()).data, []);
  expectOk(await calls.get(id));
});

test("a sandbox that does not run cannot be kept, nor cloned, nor deleted with a snapshot", async () => {
  const broken = await brokenSandbox();
  const count = (await calls.list()).pagination.total_items;
  expectError(await calls.snapshot(broken), "conflict", /not running.*error/);
  expectError(await calls.clone(broken), "conflict", /not running.*error/);
  expectError(await api.call("DELETE", `/v1/sandboxes/${broken}/delete`, { create_snapshot: true }), "conflict", /not running.*error/);
  assert.equal((await calls.list()).pagination.total_items, count);
  expectOk(await api.call("GET", `/v1/sandboxes/${broken}`));
  await api.delete(broken);
});

test("list shows ready ones, newest first, in pages", async () => {
  const { api: fresh } = await accounts.make("pages");
  const mine = new SnapshotCalls(fresh);
  assert.deepEqual(await mine.list(), { data: [], pagination: { page: 1, page_size: 20, total_items: 0, total_pages: 0 } });
  const source = await fresh.create();
  const ids: string[] = [];
  for (const name of ["one", "two", "three"]) ids.unshift((await mine.take(source, { name })).id);
  assert.deepEqual((await mine.list()).pagination, { page: 1, page_size: 20, total_items: 3, total_pages: 1 });
  const first = await mine.list("?page_size=2");
  const second = await mine.list("?page=2&page_size=2");
  assert.deepEqual(second.pagination, { page: 2, page_size: 2, total_items: 3, total_pages: 2 });
  const shown = [...first.data, ...second.data].map(({ id }) => id);
  assert.deepEqual(shown, ids);
  assert.deepEqual((await mine.list("?page=7")).data, []);
  for (const query of ["?page=0", "?page=x", "?page_size=101", "?page_size=0"])
    expectError(await fresh.call("GET", `/v1/snapshots/list${query}`), "invalid_request", /^page/);
});

test("one that is not ready is shown by its id, listed nowhere, and not restored", async () => {
  const { id } = await calls.take(sandbox, { name: "staged" });
  await using bucket = await openSnapshotBucket(sharedStack().natsUrl);
  for (const status of ["creating", "error"] as const) {
    await bucket.change(id, (entry) => ({ ...entry, status }));
    await until("the gateway knows", async () => (await calls.get(id)).body.status === status);
    expectError(await calls.restore(id), "conflict", new RegExp(`not ready.*${status}`));
    assert.ok(!(await calls.list()).data.some((snapshot) => snapshot.id === id));
  }
  expectOk(await calls.delete(id));
});

test("a deleted snapshot is gone, at once and for everybody, and deleting it again is not found", async () => {
  const { id, name } = await calls.take(sandbox);
  assert.deepEqual(expectOk(await calls.delete(id)), { message: "Snapshot deleted", name, deferred: false });
  expectError(await calls.delete(id), "not_found", `Snapshot not found: ${id}`);
  expectError(await calls.get(id), "not_found");
  expectError(await calls.restore(id), "not_found");
  assert.ok(!(await calls.list("?page_size=100")).data.some((snapshot) => snapshot.id === id));
});

test("of several that delete one snapshot at the same time, one succeeds", async () => {
  const { id } = await calls.take(sandbox);
  const answers = await Promise.all(Array.from({ length: 4 }, () => calls.delete(id)));
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 404, 404, 404]);
});

test("delete-all takes the caller's snapshots and nobody else's", async () => {
  const { api: fresh } = await accounts.make("delete-all");
  const mine = new SnapshotCalls(fresh);
  assert.deepEqual(expectOk(await mine.deleteAll()), { deleted_count: 0, deleted_ids: [], message: "0 snapshots deleted" });
  const source = await fresh.create();
  const kept = await calls.take(sandbox, { name: "kept" });
  const ids = [await mine.take(source), await mine.take(source, { quick: true })].map(({ id }) => id);
  const { deleted_ids, ...rest } = expectOk(await mine.deleteAll());
  assert.deepEqual(rest, { deleted_count: 2, message: "2 snapshots deleted" });
  assert.deepEqual((deleted_ids as string[]).toSorted(), ids.toSorted());
  assert.deepEqual((await mine.list()).data, []);
  expectOk(await calls.get(kept.id));
});
