/** Snapshots, restores and clones with an Idempotency-Key are carried out once, also when a gateway dies in the middle. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { IdempotencyRecord, idempotencyMs } from "../../../gateway/limit/idempotency.ts";
import { BucketWriter } from "../../../shared/bus/kv.ts";
import { buckets, peers } from "../../../shared/bus/subjects.ts";
import { checker } from "../../../shared/schemas/validate.ts";
import { newId } from "../../../shared/util/ids.ts";
import { Accounts } from "../../helpers/accounts.ts";
import type { Answer } from "../../helpers/api.ts";
import { connectBus } from "../../helpers/bus.ts";
import { expectError, expectOk } from "../../helpers/expect.ts";
import { fixture } from "../../helpers/fixture.ts";
import { sharedStack } from "../../helpers/shared.ts";
import { SnapshotCalls } from "../../helpers/snapshots.ts";

const accounts = await fixture(Accounts.open(sharedStack()));
const account = await accounts.make();
const api = account.api;
const calls = new SnapshotCalls(api);
const source = await api.create({ name: "source" });
const bus = await fixture(connectBus(sharedStack().natsUrl, "test-once"));
const records = await BucketWriter.open(bus, buckets.idempotency, checker(IdempotencyRecord), { ttlMs: idempotencyMs });

const newKey = () => ({ "idempotency-key": newId("request") });
type Key = ReturnType<typeof newKey>;

function expectReplay<T>(first: Answer<T>, again: Answer<T>): void {
  expectOk(first, 201);
  assert.equal(first.headers.get("idempotency-replayed"), null);
  expectOk(again, 201);
  assert.deepEqual(again.body, first.body);
  assert.equal(again.headers.get("idempotency-replayed"), "true");
}

/** What the bucket would say if the gateway had died after its worker had done all, or a part, of the work. */
async function forgetAnswer(key: Key): Promise<void> {
  const name = createHash("sha256").update(`${account.id}\n${key["idempotency-key"]}`).digest("hex");
  const changed = await records.change(name, ({ fingerprint, attempt_id }) => ({ fingerprint, attempt_id, peer: peers.gateway(newId("gateway")) }));
  assert.ok(changed, "there is a record of the call");
}

const counts = async (): Promise<unknown[]> => [
  (await api.call<{ pagination: { total_items: number } }>("GET", "/v1/sandboxes/list")).body.pagination.total_items,
  (await calls.list()).pagination.total_items,
];

test("the same snapshot call is answered from the first one, also when the sandbox is gone", async () => {
  const key = newKey();
  const doomed = await api.create();
  const first = await calls.snapshot(doomed, { name: "once" }, key);
  expectReplay(first, await calls.snapshot(doomed, { name: "once" }, key));
  await api.delete(doomed);
  expectReplay(first, await calls.snapshot(doomed, { name: "once", quick: false }, key));
  expectError(await calls.snapshot(doomed, { name: "twice" }, key), "idempotency_conflict");
  expectError(await calls.snapshot(source, { name: "once" }, key), "idempotency_conflict", /different request/);
});

test("the same restore makes one sandbox, also when both are sent at once", async () => {
  const { id } = await calls.take(source);
  const key = newKey();
  const before = await counts();
  const body = { name: "restored", resources: { cpus: 1 }, env_vars: { A: "1", B: "2" } };
  const [one, two] = await Promise.all([calls.restore(id, body, key), calls.restore(id, { ...body, env_vars: { B: "2", A: "1" } }, key)]);
  assert.deepEqual(expectOk(one, 201), expectOk(two, 201));
  assert.deepEqual(await counts(), [(before[0] as number) + 1, before[1]]);
  expectError(await calls.restore(id, { ...body, resources: { cpus: 2 } }, key), "idempotency_conflict");
  expectOk(await calls.delete(id));
  expectOk(await calls.restore(id, body, key), 201);
  await api.delete(one.body.id);
});

test("the same clone makes one sandbox and one snapshot", async () => {
  const key = newKey();
  const before = await counts();
  const first = await calls.clone(source, {}, key);
  expectReplay(first, await calls.clone(source, {}, key));
  assert.deepEqual(await counts(), [(before[0] as number) + 1, (before[1] as number) + 1]);
  expectError(await calls.clone(source, { name: "named" }, key), "idempotency_conflict");
  expectError(await calls.snapshot(source, {}, key), "idempotency_conflict");
  await api.delete(first.body.sandbox.id);
});

test("a call that failed may be tried again under its key", async () => {
  const key = newKey();
  const image = "localhost/no-such-image";
  for (const _ of [1, 2]) expectError(await calls.clone(source, { image }, key), "unprocessable");
  const missing = newId("snapshot");
  for (const _ of [1, 2]) expectError(await calls.restore(missing, {}, key), "not_found");
  expectOk(await calls.snapshot(source, {}, key), 201);
});

test("a snapshot whose gateway died before it answered is found, not taken again", async () => {
  const key = newKey();
  const first = await calls.snapshot(source, { quick: true }, key);
  const before = await counts();
  await forgetAnswer(key);
  expectReplay(first, await calls.snapshot(source, { quick: true }, key));
  assert.deepEqual(await counts(), before);
});

test("a restore whose gateway died before it answered is found, not made again", async () => {
  const key = newKey();
  const { id } = await calls.take(source);
  const first = await calls.restore(id, {}, key);
  const before = await counts();
  await forgetAnswer(key);
  expectReplay(first, await calls.restore(id, {}, key));
  assert.deepEqual(await counts(), before);
  await api.delete(first.body.id);
});

test("a clone whose gateway died goes on where it stopped", async () => {
  const key = newKey();
  const first = await calls.clone(source, {}, key);
  const before = await counts();
  await forgetAnswer(key);
  expectReplay(first, await calls.clone(source, {}, key));
  assert.deepEqual(await counts(), before, "all was made: nothing is made again");

  await api.delete(first.body.sandbox.id);
  await forgetAnswer(key);
  const second = await calls.clone(source, {}, key);
  expectOk(second, 201);
  assert.deepEqual(second.body.snapshot, first.body.snapshot, "the snapshot was taken: only the sandbox is made");
  assert.notEqual(second.body.sandbox.id, first.body.sandbox.id);
  assert.deepEqual(await counts(), before);

  expectOk(await calls.delete(first.body.snapshot.id));
  await forgetAnswer(key);
  expectError(await calls.clone(source, {}, key), "conflict", new RegExp(second.body.sandbox.id));
  await api.delete(second.body.sandbox.id);
});
