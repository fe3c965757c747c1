/** A gateway that dies while it takes, restores or clones; the repetition goes to another one. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { newId } from "../../../shared/util/ids.ts";
import { Api } from "../../helpers/api.ts";
import { expectOk } from "../../helpers/expect.ts";
import { fixture } from "../../helpers/fixture.ts";
import { plain } from "../../helpers/resilience.ts";
import { type Clone, SnapshotCalls } from "../../helpers/snapshots.ts";
import { startStack } from "../../helpers/stack.ts";

/** By the gateway that dies, and by the other one. */

const stack = await fixture(startStack({ name: "snap-gateway", gateways: 2, settings: { ...plain, SANDGATE_SNAPSHOT_ARCHIVE: "false" } }));
const [first, second] = stack.urls as [string, string];
const api = new Api({ url: second, apiKey: stack.apiKey });
const doomed = new SnapshotCalls(new Api({ url: first, apiKey: stack.apiKey }));
const calls = new SnapshotCalls(api);
const source = await api.create({ name: "source" });
// Large enough that taking it is not over before the gateway dies.
await api.execute(source, "yes | head -c 400000000 > /root/large", { timeout: 120 });

const counts = async (): Promise<number[]> => {
  const { pagination } = (await api.call<{ pagination: { total_items: number } }>("GET", "/v1/sandboxes/list")).body;
  return [pagination.total_items, (await calls.list()).data.length];
};

/** Ends the first gateway after some time of working on a call, and starts it again when the call is over. */
async function dieDuring(call: Promise<unknown>, afterMs: number): Promise<void> {
  const cut = call.catch(() => undefined);
  await pause(afterMs);
  await stack.gateway.kill9();
  await cut;
  await stack.gateway.start();
  await stack.ready();
}
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

for (const afterMs of [50, 200, 600]) {
  test(`a clone whose gateway dies after ${afterMs} ms is made once`, async () => {
    const key = { "idempotency-key": newId("request") };
    const [sandboxes, snapshots] = (await counts()) as [number, number];
    await dieDuring(doomed.clone(source, {}, key), afterMs);
    const { sandbox, snapshot } = expectOk(await calls.clone(source, {}, key), 201) as Clone;
    assert.deepEqual(await counts(), [sandboxes + 1, snapshots + 1]);
    assert.equal((await api.execute(sandbox.id, "stat -c %s /root/large")).stdout, "400000000\n");
    await api.delete(sandbox.id);
    expectOk(await calls.delete(snapshot.id));
  });
}

test("a snapshot whose gateway dies is taken once, and so is a restore of it", async () => {
  const key = { "idempotency-key": newId("request") };
  const [sandboxes, snapshots] = (await counts()) as [number, number];
  await dieDuring(doomed.snapshot(source, {}, key), 150);
  const snapshot = expectOk(await calls.snapshot(source, {}, key), 201);
  assert.deepEqual(await counts(), [sandboxes, snapshots + 1]);
  const other = { "idempotency-key": newId("request") };
  await dieDuring(doomed.restore(snapshot.id, {}, other), 30);
  expectOk(await calls.restore(snapshot.id, {}, other), 201);
  assert.deepEqual(await counts(), [sandboxes + 1, snapshots + 1]);
});
