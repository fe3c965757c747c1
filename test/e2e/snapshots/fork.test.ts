/** Forks over HTTP: many copies of a sandbox as it is now. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { IdempotencyRecord, idempotencyMs } from "../../../gateway/limit/idempotency.ts";
import { BucketWriter } from "../../../shared/bus/kv.ts";
import { buckets, peers } from "../../../shared/bus/subjects.ts";
import { checker } from "../../../shared/schemas/validate.ts";
import { newId } from "../../../shared/util/ids.ts";
import { Accounts } from "../../helpers/accounts.ts";
import { connectBus } from "../../helpers/bus.ts";
import { expectError, expectOk, requestId } from "../../helpers/expect.ts";
import { fixture } from "../../helpers/fixture.ts";
import { sharedStack } from "../../helpers/shared.ts";
import { type Sandbox, SnapshotCalls } from "../../helpers/snapshots.ts";
import { until } from "../../helpers/until.ts";

const accounts = await fixture(Accounts.open(sharedStack()));
const account = await accounts.make();
const api = account.api;
const calls = new SnapshotCalls(api);
const settings = { resources: { cpus: 2, memory: 256, storage: 3 }, network: { access: "none" } };
const source = await api.create({ name: "source", ...settings, env_vars: { KEPT: "kept" } });

const newKey = () => ({ "idempotency-key": newId("request") });
const list = async (of = api) => (await of.call<{ data: Sandbox[]; pagination: { total_items: number } }>("GET", "/v1/sandboxes/list?page_size=100")).body;
const removeAll = async (copies: readonly Sandbox[]): Promise<unknown> => Promise.all(copies.map(({ id }) => api.delete(id)));

test("copies have the files of now, the settings and the variables; then each goes its own way, and no snapshot is left", async () => {
  const before = await calls.take(source, { name: "older" });
  await api.execute(source, "echo now > /root/moment");
  const copies = await calls.forked(source, { count: 3 });
  assert.equal(copies.length, 3);
  assert.equal(new Set([source, ...copies.map(({ id }) => id)]).size, 4);
  for (const { name } of copies) assert.match(name, /^source-fork-[0-9a-z]{4,}$/);
  assert.equal(new Set(copies.map(({ name }) => name)).size, 3);
  for (const { id, memory_restored, memory_reason, ...sandbox } of copies) {
    const { status, cpu, memory, storage, network } = sandbox as unknown as Record<string, unknown>;
    assert.deepEqual({ status, cpu, memory, storage, network }, { status: "running", cpu: 2, memory: 256, storage: 3, network: { access: "none" } });
    assert.ok(memory_restored !== Boolean(memory_reason));
    assert.equal((await api.execute(id, `cat /root/moment; echo $KEPT; echo ${id} > /root/moment`)).stdout, "now\nkept\n");
  }
  for (const { id } of copies) assert.equal((await api.execute(id, "cat /root/moment")).stdout, `${id}\n`);
  assert.equal((await api.execute(source, "cat /root/moment")).stdout, "now\n");
  assert.deepEqual(
    (await calls.list()).data.map(({ id }) => id),
    [before.id],
    "only the snapshot that was taken by name",
  );
  await removeAll(copies);
  expectOk(await calls.delete(before.id));
});

test("copies have the name that is asked for, with numbers if there are several, and the resources", async () => {
  const copies = await calls.forked(source, { count: 2, name: "try", resources: { cpus: 1, memory: 512 } });
  assert.deepEqual(
    copies.map(({ name }) => name),
    ["try-1", "try-2"],
  );
  assert.deepEqual(
    copies.map((one) => [(one as never as { cpu: number }).cpu, (one as never as { memory: number }).memory]),
    Array(2).fill([1, 512]),
  );
  const [alone] = await calls.forked(source, { count: 1, name: "try" });
  assert.equal(alone?.name, "try");
  const long = await calls.forked(source, { count: 2, name: "n".repeat(63) });
  assert.deepEqual(
    long.map(({ name }) => name),
    ["1", "2"].map((number) => `${"n".repeat(61)}-${number}`),
  );
  await removeAll([...copies, ...(alone ? [alone] : []), ...long]);
});

test("with wait_for_ready false the answer comes while copies are being made, and they get there without the snapshot", async () => {
  const copies = await calls.forked(source, { count: 2, wait_for_ready: false });
  for (const { id, status } of copies) {
    assert.equal(status, "creating");
    await until("the copy runs", async () => (await api.call("GET", `/v1/sandboxes/${id}`)).body.status === "running");
    assert.equal((await api.execute(id, "cat /root/moment")).stdout, "now\n");
  }
  await removeAll(copies);
});

const wrong: [what: string, body: unknown, message: RegExp][] = [
  ["no count", {}, /^Missing required field: count$/],
  ["none", { count: 0 }, /^count must be between 1 and 100/],
  ["too many", { count: 101 }, /^count must be between 1 and 100/],
  ["half a copy", { count: 1.5 }, /^count must be between 1 and 100/],
  ["a count as text", { count: "3" }, /^count must be between 1 and 100/],
  ["a bad name", { count: 1, name: "a b" }, /^name must be/],
  ["storage", { count: 1, resources: { storage: 9 } }, /^Unknown field: resources\.storage$/],
  ["an image", { count: 1, image: "default" }, /^Unknown field: image$/],
  ["the name of a snapshot", { count: 1, snapshot_name: "s" }, /^Unknown field: snapshot_name$/],
];
for (const [what, body, message] of wrong) {
  test(`a fork with ${what} is refused`, async () => void expectError(await calls.fork(source, body), "invalid_request", message));
}

test("what is not there, is another account's or does not run, is not forked", async () => {
  const other = new SnapshotCalls((await accounts.make("other")).api);
  for (const missing of [newId("sandbox"), "sb_nonsense", newId("snapshot")])
    expectError(await calls.fork(missing, { count: 2 }), "not_found", /^Sandbox not found/);
  expectError(await other.fork(source, { count: 2 }), "not_found", `Sandbox not found: ${source}`);
  const { id } = expectOk(await api.call<{ id: string }>("POST", "/v1/sandboxes/create", { image: "localhost/no-such-image", wait_for_ready: false }), 201);
  await until("it is in state error", async () => (await api.call("GET", `/v1/sandboxes/${id}`)).body.status === "error");
  expectError(await calls.fork(id, { count: 2 }), "conflict", /not running.*error/);
  await api.delete(id);
});

test("a fork beyond the limit of the key is refused as a whole, and one within it is not", async () => {
  const limits = { requests_per_minute: 10_000, sandboxes: 4 };
  const { api: bounded } = await accounts.make("bounded", { tier: "enterprise", limits });
  const mine = new SnapshotCalls(bounded);
  const id = await bounded.create({ name: "only" });
  const answer = await mine.fork(id, { count: 4 });
  expectError(answer, "sandbox_limit_reached", "this key may have 4 sandboxes at the same time, which leaves no room for 4 more");
  assert.equal((await list(bounded)).pagination.total_items, 1);
  // Of two forks at once for which there is room for one, one is made as a whole.
  const both = await Promise.all([mine.fork(id, { count: 2 }), mine.fork(id, { count: 2 })]);
  assert.deepEqual(both.map(({ status }) => status).sort(), [201, 429]);
  assert.equal((await list(bounded)).pagination.total_items, 3);
  expectError(await mine.fork(id, { count: 2 }), "sandbox_limit_reached", /no room for 2 more$/);
  assert.equal((await mine.forked(id, { count: 1 })).length, 1);
  expectError(await mine.fork(id, { count: 1 }), "sandbox_limit_reached", /delete one first$/);
  expectOk(await bounded.call("DELETE", "/v1/sandboxes/delete-all"));
});

test("a fork counts as one request", async () => {
  const limits = { requests_per_minute: 4, sandboxes: 10 };
  const { api: slow } = await accounts.make("slow", { tier: "enterprise", limits });
  const id = await slow.create();
  const answer = await new SnapshotCalls(slow).fork(id, { count: 3 });
  assert.equal(expectOk(answer, 201).data.length, 3);
  assert.match(answer.headers.get("ratelimit") ?? "", /r=2/);
  expectOk(await slow.call("DELETE", "/v1/sandboxes/delete-all"));
});

test("the same fork is carried out once; its key is for nothing else", async () => {
  const key = newKey();
  const copies = await calls.forked(source, { count: 2 }, key);
  const again = await calls.fork(source, { count: 2 }, key);
  assert.deepEqual(
    expectOk(again, 201).data.map(({ sandbox }) => sandbox),
    copies,
  );
  assert.equal(again.headers.get("idempotency-replayed"), "true");
  expectError(await calls.fork(source, { count: 3 }, key), "idempotency_conflict");
  expectError(await calls.clone(source, {}, key), "idempotency_conflict");
  await removeAll(copies);
});

const bus = await fixture(connectBus(sharedStack().natsUrl, "test-fork"));
const records = await BucketWriter.open(bus, buckets.idempotency, checker(IdempotencyRecord), { ttlMs: idempotencyMs });

/** What the bucket would say if the gateway had died after its worker had done all, or a part, of the work. */
async function forgetAnswer(key: ReturnType<typeof newKey>): Promise<void> {
  const name = createHash("sha256").update(`${account.id}\n${key["idempotency-key"]}`).digest("hex");
  const changed = await records.change(name, ({ fingerprint, attempt_id }) => ({ fingerprint, attempt_id, peer: peers.gateway(newId("gateway")) }));
  assert.ok(changed, "there is a record of the call");
}

test("a fork whose gateway died is answered with what it had made, and made anew if that is nothing", async () => {
  const key = newKey();
  const copies = await calls.forked(source, { count: 3 }, key);
  await forgetAnswer(key);
  assert.deepEqual(await calls.forked(source, { count: 3 }, key), copies, "all was made");

  await api.delete(copies[1]?.id ?? "");
  await forgetAnswer(key);
  const answer = await calls.fork(source, { count: 3 }, key);
  const { data } = expectOk(answer, 201);
  assert.deepEqual([data[0]?.sandbox, data[2]?.sandbox], [copies[0], copies[2]]);
  const { request_id, ...error } = data[1]?.error ?? assert.fail("the copy that is missing has an error");
  assert.deepEqual(error, { code: "unavailable", message: "the gateway was lost before it had made this copy" });
  assert.match(request_id, requestId);

  await removeAll(copies);
  await forgetAnswer(key);
  const anew = await calls.forked(source, { count: 3 }, key);
  for (const { id } of anew) assert.ok(!copies.some((copy) => copy.id === id));
  await removeAll(anew);
});

test("a failed fork may be tried again under its key", async () => {
  const key = newKey();
  const missing = newId("sandbox");
  for (const _ of [1, 2]) expectError(await calls.fork(missing, { count: 2 }, key), "not_found");
  await removeAll(await calls.forked(source, { count: 1 }, key));
});

test("a client that goes away does not stop its fork", async () => {
  const before = (await list()).pagination.total_items;
  const away = new AbortController();
  const cut = api.call("POST", `/v1/sandboxes/${source}/fork`, { count: 2, name: "left" }, {}, away.signal).catch(() => undefined);
  await until("the first copy is there", async () => (await list()).data.some(({ name }) => name.startsWith("left-")));
  away.abort();
  await cut;
  await until("all copies run", async () => {
    const { data, pagination } = await list();
    return pagination.total_items === before + 2 && data.every(({ status }) => status === "running");
  });
  await removeAll((await list()).data.filter(({ name }) => name.startsWith("left-")));
});
