/** What is made from snapshots, over HTTP: restore, clone, and the snapshot that a deletion leaves. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Accounts } from "../../helpers/accounts.ts";
import { Api } from "../../helpers/api.ts";
import { expectError, expectOk } from "../../helpers/expect.ts";
import { fixture } from "../../helpers/fixture.ts";
import { sharedStack } from "../../helpers/shared.ts";
import { openSnapshotBucket, type Sandbox, type Snapshot, SnapshotCalls } from "../../helpers/snapshots.ts";
import { until } from "../../helpers/until.ts";

const settings = { name: "source", resources: { cpus: 2, memory: 256, storage: 3 }, network: { access: "none" } };

const accounts = await fixture(Accounts.open(sharedStack()));
const account = await accounts.make();
const api = account.api;
const calls = new SnapshotCalls(api);
const source = await api.create({ ...settings, env_vars: { KEPT: "kept", CHANGED: "old" } });
await api.execute(source, "mkdir -p /root/d && echo marked > /root/d/marker");
const snapshot = await calls.take(source, { name: "base" });

const marker = async (id: string): Promise<string> => (await api.execute(id, "cat /root/d/marker; echo $KEPT,$CHANGED,$ADDED")).stdout;
const withoutIds = ({ id: _id, created_at: _at, memory_restored: _restored, memory_reason: _reason, ...rest }: Record<string, unknown>) => rest;
const sandboxCount = async (of = api): Promise<unknown> => (await of.call<{ pagination: object }>("GET", "/v1/sandboxes/list")).body.pagination;

/** What a copy takes over, besides names and ids. */
const settingsOfSource = {
  status: "running",
  image: "default",
  cpu: 2,
  memory: 256,
  storage: 3,
  disk_size: 3,
  network: { access: "none" },
  isolation: "standard",
};

test("a restored sandbox has the files, settings and variables of the snapshot, and a name of its own", async () => {
  await api.execute(source, "echo later > /root/d/marker");
  const sandbox = await calls.restored(snapshot.id);
  const { name, ...rest } = withoutIds(sandbox as never);
  assert.deepEqual(rest, settingsOfSource);
  assert.match(name as string, /^sandbox-[0-9a-z]{4,}$/);
  assert.notEqual(sandbox.id, source);
  assert.equal(await marker(sandbox.id), "marked\nkept,old,\n");
  assert.deepEqual(expectOk(await api.call("GET", `/v1/sandboxes/${sandbox.id}`)), sandbox);
  await api.delete(sandbox.id);
});

test("name, resources, image and variables of a restore come before those of the snapshot", async () => {
  const body = { name: "other", image: "default", resources: { cpus: 1, memory: 512, storage: 7 }, env_vars: { CHANGED: "new", ADDED: "1" } };
  const sandbox = await calls.restored(snapshot.id, body);
  const { name, cpu, memory, storage } = sandbox as unknown as Record<string, unknown>;
  assert.deepEqual({ name, cpu, memory, storage }, { name: "other", cpu: 1, memory: 512, storage: 7 });
  assert.equal(await marker(sandbox.id), "marked\nkept,new,1\n");
  await api.delete(sandbox.id);
});

test("a snapshot with a pipe in the place of /etc/passwd is refused, and holds up nobody", async () => {
  const odd = await api.create();
  await api.execute(odd, "rm /etc/passwd; mkfifo /etc/passwd");
  const taken = await calls.take(odd);
  const answers = await Promise.all(Array.from({ length: 3 }, () => api.call("POST", `/v1/snapshots/${taken.id}/restore`, {})));
  for (const answer of answers) expectError(answer, "unprocessable", /is a pipe/);
  await api.delete(await api.create());
  await api.delete(odd);
});

test("with wait_for_ready false a restore and a clone are answered while the sandbox is being made", async () => {
  const restored = await calls.restored(snapshot.id, { wait_for_ready: false });
  const { sandbox: cloned } = await calls.cloned(source, { wait_for_ready: false });
  for (const { id, status } of [restored, cloned]) {
    assert.equal(status, "creating");
    await until("the sandbox runs", async () => (await api.call("GET", `/v1/sandboxes/${id}`)).body.status === "running");
    await api.delete(id);
  }
});

test("storage below what the snapshot uses is unprocessable and names both", async () => {
  const { id } = await calls.take(source);
  await using bucket = await openSnapshotBucket(sharedStack().natsUrl);
  await bucket.change(id, (entry) => ({
    ...entry,
    manifest: { ...entry.manifest, layers: [{ id: "layer_big", size_bytes: 2.5 * 1024 ** 3 }] },
    name: "big",
  }));
  await until("the gateway knows", async () => (await calls.get(id)).body.name === "big");
  expectError(await calls.restore(id, { resources: { storage: 2 } }), "unprocessable", /2 GB.* 2\.5 GB/);
  expectOk(await calls.delete(id));
});

test("an image that cannot be had is unprocessable; nothing is left of the restore, nor of the clone and its snapshot", async () => {
  const [sandboxes, snapshots] = [await sandboxCount(), (await calls.list()).pagination];
  const image = "localhost/no-such-image:latest";
  expectError(await calls.restore(snapshot.id, { image }), "unprocessable", /image not found/);
  expectError(await calls.clone(source, { image, snapshot_name: "unwanted" }), "unprocessable", /image not found/);
  assert.deepEqual([await sandboxCount(), (await calls.list()).pagination], [sandboxes, snapshots]);
});

const refused: [string, unknown, RegExp][] = [
  ["a bad name", { name: "a b" }, /^name must be/],
  ["too many CPUs", { resources: { cpus: 33 } }, /^resources\.cpus must be between 1 and 32/],
  ["too little memory", { resources: { memory: 127 } }, /^resources\.memory must be between 128/],
  ["resources that are a list", { resources: [] }, /^resources must be an object$/],
  ["an image that is a number", { image: 7 }, /^image must be/],
  ["wait_for_ready as text", { wait_for_ready: "no" }, /^wait_for_ready must be true or false$/],
];
for (const [what, body, message] of refused) {
  test(`${what} is refused by restore and clone`, async () => {
    expectError(await calls.restore(snapshot.id, body), "invalid_request", message);
    expectError(await calls.clone(source, body), "invalid_request", message);
  });
}

test("an image that is no name of one is refused by restore and clone before anything is made", async () => {
  for (const image of ["--x", "", "oci:/etc", "default\n"]) {
    expectError(await calls.restore(snapshot.id, { image }), "unprocessable", /^image must be/);
    expectError(await calls.clone(source, { image }), "unprocessable", /^image must be/);
  }
});

test("fields that only one of the two has are checked there and refused by the other", async () => {
  expectError(await calls.restore(snapshot.id, { resources: { storage: 0 } }), "invalid_request", /^resources\.storage/);
  expectError(await calls.restore(snapshot.id, { env_vars: { "A=B": "" } }), "invalid_request", /^env_vars/);
  expectError(await calls.clone(source, { snapshot_name: "-a" }), "invalid_request", /^snapshot_name must be/);
  expectError(await calls.restore(snapshot.id, { snapshot_name: "a" }), "invalid_request", "Unknown field: snapshot_name");
  expectError(await calls.clone(source, { resources: { storage: 9 } }), "invalid_request", "Unknown field: resources.storage");
  expectError(await calls.clone(source, { env_vars: { KEPT: "no" } }), "invalid_request", "Unknown field: env_vars");
  const { sandbox } = await calls.cloned(source);
  assert.equal((sandbox as unknown as { storage: number }).storage, 3, "storage is inherited");
  assert.match(await marker(sandbox.id), /kept,old/);
  await api.delete(sandbox.id);
});

test("a clone answers both, the sandbox and the snapshot, with names made from the source's", async () => {
  const { sandbox, snapshot: taken } = await calls.cloned(source);
  const { name, ...rest } = withoutIds(sandbox as never);
  assert.deepEqual(rest, settingsOfSource);
  assert.match(name as string, /^source-clone-[0-9a-z]{4,}$/);
  assert.match(taken.name, /^source-snap-[0-9a-z]{4,}$/);
  assert.deepEqual([taken.status, taken.consistency, taken.source_sandbox_id], ["ready", "application", source]);
  assert.deepEqual(expectOk(await calls.get(taken.id)), taken);
  assert.equal(await marker(sandbox.id), "later\nkept,old,\n", "as the source is now");
  const more = { name: "second", snapshot_name: "between", resources: { cpus: 1, memory: 128 } };
  const second = await calls.cloned(sandbox.id, more);
  assert.deepEqual([second.sandbox.name, second.snapshot.name, second.snapshot.source_sandbox_id], ["second", "between", sandbox.id]);
  assert.equal((second.sandbox as unknown as { memory: number }).memory, 128);
  assert.equal(await marker(second.sandbox.id), "later\nkept,old,\n", "a clone of a clone");
  await Promise.all([api.delete(sandbox.id), api.delete(second.sandbox.id)]);
});

test("sandboxes live on when their snapshot is deleted, and snapshots when their source is", async () => {
  const { sandbox, snapshot: taken } = await calls.cloned(source);
  expectOk(await calls.delete(taken.id));
  assert.match(await marker(sandbox.id), /^later/);
  const kept = await calls.take(sandbox.id, { name: "of-a-clone" });
  await api.delete(sandbox.id);
  const { id } = await calls.restored(kept.id);
  assert.match(await marker(id), /^later/);
  await api.delete(id);
});

test("a deletion leaves a snapshot where it is asked for, under the name that is asked for", async () => {
  const { id } = await calls.restored(snapshot.id, { name: "leaving" });
  const answer = expectOk(await api.call("DELETE", `/v1/sandboxes/${id}/delete`, { create_snapshot: true, snapshot_name: "last-words" }));
  assert.deepEqual(answer, { id, message: "Sandbox deleted", snapshot_created: true, snapshot_name: "last-words", storage_deleted: true });
  expectError(await api.call("GET", `/v1/sandboxes/${id}`), "not_found");
  const left = (await calls.list()).data[0] as Snapshot;
  assert.deepEqual([left.name, left.source_sandbox_id, left.status], ["last-words", id, "ready"]);
  const again = await calls.restored(left.id);
  assert.match(await marker(again.id), /^marked/);
  const plain = expectOk(await api.call("DELETE", `/v1/sandboxes/${again.id}/delete`, { create_snapshot: false, snapshot_name: "none" }));
  assert.deepEqual(plain, { id: again.id, message: "Sandbox deleted", storage_deleted: true });
  assert.equal((await calls.list()).data[0]?.id, left.id);
});

test("restores and clones count for the limit of the key, and one too many leaves nothing", async () => {
  const limited = await accounts.make("limited");
  const mine = new SnapshotCalls(limited.api);
  const operator = new Api(sharedStack());
  expectOk(await operator.call("POST", `/v1/admin/accounts/${limited.id}`, { limits: { sandboxes: 2 } }));
  const first = await limited.api.create();
  const { id } = await mine.take(first);
  const second = await mine.restored(id);
  expectError(await mine.restore(id), "sandbox_limit_reached", /2 sandboxes/);
  expectError(await mine.clone(first), "sandbox_limit_reached", /2 sandboxes/);
  assert.equal((await mine.list()).data.length, 1, "no snapshot was taken for a clone without a place");
  expectError(await mine.clone(first, { image: "localhost/no-such-image" }), "sandbox_limit_reached");
  await limited.api.delete(second.id);
  expectError(await mine.restore(id, { image: "localhost/no-such-image" }), "unprocessable");
  expectError(await mine.clone(first, { image: "localhost/no-such-image" }), "unprocessable");
  const { sandbox } = await mine.cloned(first);
  const answers = await Promise.all([mine.restore(id), mine.clone(first), limited.api.call("POST", "/v1/sandboxes/create", { image: "default" })]);
  for (const answer of answers) expectError(answer as never, "sandbox_limit_reached");
  await limited.api.delete(sandbox.id);
  const race = await Promise.all(Array.from({ length: 4 }, () => mine.restore(id)));
  assert.deepEqual(race.map(({ status }) => status).sort(), [201, 429, 429, 429]);
});

test("all of it is there for browsers, too", async () => {
  const credentials = { email: `snap-${Date.now()}@example.com`, password: "a long enough password" };
  const anyone = new Api({ url: sharedStack().url, apiKey: "" });
  expectOk(await anyone.call("POST", "/v1/auth/signup", credentials));
  const entered = await anyone.call<{ account: { id: string }; csrf_token: string; features: string[] }>("POST", "/v1/auth/login", credentials);
  const { account, csrf_token, features } = expectOk(entered);
  assert.ok(features.includes("snapshots"), "pages are told that there are snapshots");
  const named = { "x-sandgate-account": account.id };
  const cookie = (entered.headers.getSetCookie()[0] ?? "").split(";")[0] as string;
  const call = <T = Record<string, unknown>>(method: string, path: string, body?: unknown) =>
    anyone.call<T>(method, path, body, { ...named, cookie, "x-csrf-token": csrf_token });
  const { id } = expectOk(await call<Sandbox>("POST", "/v1/sandboxes/create", { image: "default" }), 201);
  const taken = expectOk(await call<Snapshot>("POST", `/v1/sandboxes/${id}/snapshot`), 201);
  expectOk(await call("POST", `/v1/sandboxes/${id}/clone`), 201);
  expectOk(await call("POST", `/v1/snapshots/${taken.id}/restore`), 201);
  assert.equal(expectOk(await call<{ data: Snapshot[] }>("GET", "/v1/snapshots/list")).data.length, 2);
  expectError(await anyone.call("DELETE", `/v1/snapshots/${taken.id}`, undefined, { ...named, cookie }), "forbidden");
  expectOk(await call("DELETE", `/v1/snapshots/${taken.id}`));
  assert.equal(expectOk(await call("DELETE", "/v1/snapshots/delete-all")).deleted_count, 1);
  assert.equal(expectOk(await call("DELETE", "/v1/sandboxes/delete-all")).deleted_count, 3);
});
