/** Two workers behind one gateway. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Api } from "../../helpers/api.ts";
import { expectError } from "../../helpers/expect.ts";
import { fixture } from "../../helpers/fixture.ts";
import { answers, assertUnavailable, listOf, plain, usable, withSettings } from "../../helpers/resilience.ts";
import { openSnapshotBucket, SnapshotCalls } from "../../helpers/snapshots.ts";
import { startStack } from "../../helpers/stack.ts";
import { until } from "../../helpers/until.ts";

/** A sandbox of each worker, in the order of `stack.workers`. */
let ids: string[];

const stack = await fixture(startStack({ name: "fleet", workers: 2, settings: plain }));
const api = new Api(stack);
const workers = async (): Promise<unknown[]> => ((await (await fetch(`${stack.url}/readyz`)).json()) as { workers: unknown[] }).workers;
await until("both workers", async () => (await workers()).length === 2);

/** The worker whose label a container carries. */
async function workerIdOf(sandboxId: string): Promise<string> {
  const container = (await stack.containers()).find((item) => item.sandboxId === sandboxId);
  return (
    await stack.containerPodman(["container", "inspect", "--format", '{{index .Config.Labels "sandgate.worker"}}', container?.id ?? ""], container?.workerId)
  ).trim();
}

test("new sandboxes are spread over the workers", async () => {
  const made = new Map<string, string>();
  for (let count = 0; count < 8 && made.size < 2; count++) {
    const id = await api.create();
    made.set(await workerIdOf(id), id);
  }
  ids = stack.workers.map(({ spec }) => made.get(spec.env.SANDGATE_WORKER_ID as string) ?? assert.fail("one worker got everything"));
});

test("logs of both workers are merged, newest first", async () => {
  const [first, second] = ids as [string, string];
  for (const id of [first, second, first]) await api.execute(id, `echo ${id}`);
  const { body } = await api.call<{ logs: { sandbox_id: string; timestamp: string }[]; total: number }>("GET", "/v1/sandboxes/logs?limit=3");
  assert.deepEqual(
    body.logs.map(({ sandbox_id }) => sandbox_id),
    [first, second, first],
  );
  assert.ok(body.total >= 3);
});

test("what a worker without disk space refuses, the other one makes; where there is no other, the refusal is told", async () => {
  const [first] = ids as [string, string];
  const calls = new SnapshotCalls(api);
  await using bucket = await openSnapshotBucket(stack.natsUrl);
  const { id: snapshot } = await calls.take(first);
  await until("it is archived", async () => (await bucket.read(snapshot))?.archived === "done");
  const [worker, other] = stack.workers;
  assert.ok(worker && other);
  await worker.kill9();
  await using full = withSettings(worker, { SANDGATE_DISK_FLOOR_BYTES: String(1024 ** 4) });
  await full.start();
  await usable(api, first);
  const made = [...(await Promise.all(Array.from({ length: 4 }, () => api.create()))), (await calls.restored(snapshot)).id];
  for (const id of made) {
    assert.equal(await workerIdOf(id), other.spec.env.SANDGATE_WORKER_ID);
    await api.delete(id);
  }
  await other.kill9();
  const refused = { code: "insufficient_storage", message: "the host has too little free disk space" } as const;
  await until("it is the only one", async () => (await workers()).length === 1);
  expectError(await api.call("POST", "/v1/sandboxes/create", { image: "default" }), refused.code, refused.message);
  await other.start();
  await full.kill9();
  await worker.start();
  for (const id of ids) await usable(api, id);
});

test("the death of one worker leaves the sandboxes of the other usable, and new ones go there", async () => {
  const [first, second] = ids as [string, string];
  await stack.worker.kill9();
  assertUnavailable(await answers(api.call("POST", `/v1/sandboxes/${first}/execute`, { command: "true" })));
  assert.equal((await api.execute(second, "echo alive")).stdout, "alive\n");
  const id = await api.create();
  assert.equal(await workerIdOf(id), stack.workers[1]?.spec.env.SANDGATE_WORKER_ID);
  assert.ok(
    (await listOf(api)).some((sandbox) => sandbox.id === first),
    "a sandbox is not forgotten with its worker away",
  );
  assertUnavailable(await answers(api.call("DELETE", `/v1/sandboxes/${first}/delete`)));
  await stack.worker.start();
  await usable(api, first);
  const { body } = await api.call<{ deleted_ids: string[]; errors?: unknown }>("DELETE", "/v1/sandboxes/delete-all");
  assert.equal(body.errors, undefined);
  assert.deepEqual(await stack.containers(), []);
});
