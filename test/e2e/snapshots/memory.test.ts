/** What calls about snapshots say of memory, on a worker that cannot take it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { newId } from "../../../shared/util/ids.ts";
import { Accounts } from "../../helpers/accounts.ts";
import { expectError, expectOk } from "../../helpers/expect.ts";
import { fixture } from "../../helpers/fixture.ts";
import { sharedStack } from "../../helpers/shared.ts";
import { type Sandbox, SnapshotCalls } from "../../helpers/snapshots.ts";
import { until } from "../../helpers/until.ts";

const accounts = await fixture(Accounts.open(sharedStack()));
const api = (await accounts.make()).api;
const calls = new SnapshotCalls(api);
const source = await api.create({ name: "source", env_vars: { A: "1" } });
await api.execute(source, "echo kept > /root/kept");

const probe = await calls.take(source, { memory: "prefer" });
expectOk(await calls.delete(probe.id));
/** Why this worker cannot take memory. */
const incapable = probe.memory_reason ?? assert.fail("a worker of the tests cannot take memory");
const none = `the snapshot does not include memory: ${incapable}`;
const shown = async (id: string): Promise<Sandbox> => expectOk(await api.call<Sandbox>("GET", `/v1/sandboxes/${id}`));
/** How many there are of the account. */
const counts = async (): Promise<unknown[]> => [
  (await api.call<{ pagination: { total_items: number } }>("GET", "/v1/sandboxes/list")).body.pagination.total_items,
  (await calls.list()).pagination.total_items,
];

test("the reason is a sentence without its full stop", () => assert.match(incapable, /^[a-z].*[a-z]$/));

/** Like that of an answer with reason. */
function expectNoMemory(answer: Parameters<typeof expectError>[0], why: string): void {
  expectError(answer, "unprocessable", `memory is required, but ${why}`);
  assert.equal((answer.body as { error: { reason: string } }).error.reason, "memory_unavailable");
}

const told: [what: string, body: object, reason: string | null][] = [
  ["that does not speak of memory", {}, incapable],
  ["that prefers memory", { memory: "prefer" }, incapable],
  ["that skips memory", { memory: "skip" }, null],
  ["that is quick", { quick: true }, null],
  ["that is quick and skips memory", { quick: true, memory: "skip" }, null],
  ["that is quick and prefers memory", { quick: true, memory: "prefer" }, "a quick snapshot does not include memory"],
];
for (const [what, body, reason] of told) {
  test(`a snapshot ${what} has files only${reason === null ? "" : ", and says why"}, everywhere`, async () => {
    const { id, memory, memory_reason } = await calls.take(source, body);
    assert.deepEqual({ memory, memory_reason }, { memory: false, memory_reason: reason });
    const [got, listed] = [expectOk(await calls.get(id)), (await calls.list()).data.find((one) => one.id === id)];
    for (const one of [got, listed]) assert.deepEqual([one?.memory, one?.memory_reason], [false, reason]);
    expectOk(await calls.delete(id));
  });
}

test("where memory is required, nothing is taken, copied or restored without, and nothing is left", async () => {
  const { id } = await calls.take(source);
  const before = await counts();
  expectNoMemory(await calls.snapshot(source, { memory: "require" }), incapable);
  expectNoMemory(await calls.clone(source, { memory: "require" }), incapable);
  expectNoMemory(await calls.fork(source, { count: 2, memory: "require" }), incapable);
  expectNoMemory(await calls.restore(id, { memory: "require" }), none);
  expectNoMemory(await calls.restore(id, { memory: "require", wait_for_ready: false }), none);
  assert.deepEqual(await counts(), before);
  assert.equal((await api.execute(source, "cat /root/kept")).stdout, "kept\n", "the sandbox goes on");
  expectOk(await calls.delete(id));
});

test("what can never include memory is refused before a worker is asked", async () => {
  expectError(await calls.snapshot(source, { quick: true, memory: "require" }), "invalid_request", /^a quick snapshot never includes memory/);
  const image = { image: "default", memory: "require" };
  expectNoMemory(await calls.clone(source, image), "processes cannot continue on another image");
  const smaller = { resources: { memory: 256 }, memory: "require" };
  expectNoMemory(await calls.clone(source, smaller), "processes cannot continue with less memory than they had (512 MiB)");
  expectNoMemory(await calls.fork(source, { count: 2, ...smaller }), "processes cannot continue with less memory than they had (512 MiB)");
});

test("a wish that does not exist is refused with those that do", async () => {
  const { id } = await calls.take(source);
  for (const memory of ["always", "", true, null]) {
    const message = 'memory must be "require", "prefer" or "skip"';
    for (const answer of [await calls.snapshot(source, { memory }), await calls.clone(source, { memory }), await calls.restore(id, { memory })])
      expectError(answer, "invalid_request", message);
    expectError(await calls.fork(source, { count: 1, memory }), "invalid_request", message);
  }
  expectOk(await calls.delete(id));
});

const changes: [what: string, body: object, reason: string | null][] = [
  ["nothing about memory", {}, none],
  ["that memory is skipped", { memory: "skip" }, null],
  ["other env_vars", { env_vars: { A: "2" } }, "processes cannot continue with other env_vars"],
  ["the same env_vars", { env_vars: { A: "1" } }, none],
  ["other storage", { resources: { storage: 6 } }, "processes cannot continue with other storage"],
  ["an image", { image: "default" }, "processes cannot continue on another image"],
];
for (const [what, body, reason] of changes) {
  test(`a restore that says ${what} tells what became of memory, also later, also when it is repeated`, async () => {
    const { id } = await calls.take(source);
    const key = { "idempotency-key": newId("request") };
    const made = expectOk(await calls.restore(id, body, key), 201);
    assert.deepEqual([made.memory_restored, made.memory_reason], [false, reason]);
    assert.deepEqual(expectOk(await calls.restore(id, body, key), 201), made);
    assert.deepEqual(await shown(made.id), made);
    await api.delete(made.id);
    expectOk(await calls.delete(id));
  });
}

test("a clone tells it of both, and so does a sandbox that is still being made", async () => {
  const { sandbox, snapshot } = await calls.cloned(source, { wait_for_ready: false });
  assert.deepEqual([snapshot.memory, snapshot.memory_reason], [false, incapable]);
  assert.deepEqual([sandbox.memory_restored, sandbox.memory_reason], [false, none]);
  await until("it runs", async () => (await shown(sandbox.id)).status === "running");
  const { memory_restored, memory_reason } = await shown(sandbox.id);
  assert.deepEqual([memory_restored, memory_reason], [false, none]);
  await api.delete(sandbox.id);
  expectOk(await calls.delete(snapshot.id));
});

test("a clone for which memory could not continue takes a snapshot without", async () => {
  const { sandbox, snapshot } = await calls.cloned(source, { resources: { memory: 256 } });
  assert.deepEqual([snapshot.memory, snapshot.memory_reason], [false, null]);
  assert.equal(sandbox.memory_reason, "processes cannot continue with less memory than they had (512 MiB)");
  await api.delete(sandbox.id);
  expectOk(await calls.delete(snapshot.id));
});

test("the last snapshot of a deleted sandbox has files only, as asked", async () => {
  const id = await api.create();
  expectOk(await api.call("DELETE", `/v1/sandboxes/${id}/delete`, { create_snapshot: true, snapshot_name: "last" }));
  const last = (await calls.list()).data.find(({ name }) => name === "last");
  assert.deepEqual([last?.memory, last?.memory_reason], [false, null]);
  expectOk(await calls.delete(last?.id ?? ""));
});

test("every sandbox can read its generation, which is its own, and cannot change it", async () => {
  const generation = "/run/.sandgate/generation";
  const { sandbox, snapshot } = await calls.cloned(source);
  const read = async (id: string): Promise<string> => (await api.execute(id, `cat ${generation}`)).stdout;
  const [of, ofCopy] = [await read(source), await read(sandbox.id)];
  for (const one of [of, ofCopy]) assert.match(one, /^[0-9a-f-]{36}\n$/);
  assert.notEqual(of, ofCopy);
  assert.equal(await read(source), of, "it stays while the sandbox runs");
  const asNobody = `python3 -c 'import os; os.setuid(65534); print(open("${generation}").read(), end="")'`;
  assert.equal((await api.execute(source, asNobody)).stdout, of);
  assert.notEqual((await api.execute(source, `echo mine > ${generation}`)).exit_code, 0);
  assert.notEqual((await api.execute(source, `rm -f ${generation}; [ ! -e ${generation} ]`)).exit_code, 0);
  await api.delete(sandbox.id);
  expectOk(await calls.delete(snapshot.id));
});
