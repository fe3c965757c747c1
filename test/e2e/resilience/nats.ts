/** A NATS server that is killed, stays away and comes back, while gateway and worker run on. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { BucketWriter } from "../../../shared/bus/kv.ts";
import { buckets } from "../../../shared/bus/subjects.ts";
import { KeyRecord } from "../../../shared/schemas/records.ts";
import { checker } from "../../../shared/schemas/validate.ts";
import { Api } from "../../helpers/api.ts";
import { connectBus } from "../../helpers/bus.ts";
import {
  answers,
  assertAgreement,
  assertExplicitEnd,
  assertUnavailable,
  runsIn,
  startEndlessUpload,
  startMarked,
  temporaryFiles,
  usable,
} from "../../helpers/resilience.ts";
import type { Stack } from "../../helpers/stack.ts";
import { until } from "../../helpers/until.ts";

export function natsTests(stack: Stack): void {
  const api = new Api(stack);

  /** Kills the server, does something while it is away, and brings it back. */
  async function outage(meanwhile: () => Promise<void> = async () => {}): Promise<void> {
    await stack.nats.kill9();
    try {
      await meanwhile();
    } finally {
      await stack.nats.start();
    }
    await stack.ready();
    // Each connection of the worker comes back by itself.
    await until("the worker stores again", async () => {
      const { status, body } = await api.call<{ id: string }>("POST", "/v1/sandboxes/create", { image: "default" });
      if (status === 201) await api.delete(body.id);
      return status === 201;
    });
  }

  /** Stores a key of the admin account, as another gateway would. */
  async function storeKey(apiKey: string): Promise<void> {
    await using bus = await connectBus(stack.natsUrl, "test");
    const keys = await BucketWriter.open(bus, buckets.keys, checker(KeyRecord));
    const hash = createHash("sha256").update(apiKey).digest("hex");
    await keys.put(hash, { id: "key_test", account_id: `acct_${"0".repeat(26)}`, name: "test", prefix: apiKey.slice(0, 10), created_at_ms: Date.now() });
  }

  test("kill -9 of NATS in mid-stream: the client is told, the command ends, nothing is run again", async () => {
    const id = await api.create();
    const { marked, outcome } = await startMarked(api, id);
    await outage(async () => {
      assertExplicitEnd(await outcome);
      await marked.gone();
    });
    await usable(api, id);
    assert.equal(await runsIn(api, id), 1);
    await api.delete(id);
  });

  test("without NATS calls get 503 at once and /readyz says so; all works again with the same processes afterwards", async () => {
    const id = await api.create();
    const pids = [stack.gateway.pid, stack.worker.pid];
    await outage(async () => {
      await until("readiness 503", async () => (await fetch(`${stack.url}/readyz`)).status === 503);
      for (const [method, path, body] of [
        ["POST", "/v1/sandboxes/create", { image: "default" }],
        ["POST", `/v1/sandboxes/${id}/execute`, { command: "true" }],
        ["POST", `/v1/sandboxes/${id}/execute_async`, { command: "true" }],
        ["GET", `/v1/sandboxes/${id}/status`, undefined],
        ["DELETE", `/v1/sandboxes/${id}/delete`, undefined],
      ] as const) {
        assertUnavailable(await answers(api.call(method, path, body), 10_000));
      }
      assert.equal((await fetch(`${stack.url}/healthz`)).status, 200);
    });
    await usable(api, id);
    assert.deepEqual([stack.gateway.pid, stack.worker.pid], pids);
    await assertAgreement(stack, api);
  });

  test("a create and a delete that were acknowledged hold when NATS is killed at once", async () => {
    const gone = await api.create();
    const kept = await api.create();
    assert.equal((await api.call("DELETE", `/v1/sandboxes/${gone}/delete`)).status, 200);
    await outage();
    await usable(api, kept);
    assert.equal((await api.call("GET", `/v1/sandboxes/${gone}`)).status, 404);
    await assertAgreement(stack, api);
  });

  test("kill -9 of NATS amid creates and deletes leaves list and containers in agreement", async () => {
    const old = await Promise.all(Array.from({ length: 4 }, () => api.create()));
    const deletions = old.map((id) => api.call("DELETE", `/v1/sandboxes/${id}/delete`));
    const creations = Array.from({ length: 5 }, () => api.call<{ id: string }>("POST", "/v1/sandboxes/create", { image: "default" }));
    await Promise.race([...deletions, ...creations]);
    await outage();
    const deleted = await Promise.all(deletions.map((call) => answers(call)));
    const created = await Promise.all(creations);
    for (const { status } of [...deleted, ...created]) assert.ok([200, 201, 503].includes(status), `${status}`);
    for (const { status, body } of created) if (status === 201) await usable(api, body.id);
    for (const [index, { status }] of deleted.entries()) if (status === 200) assert.equal((await api.call("GET", `/v1/sandboxes/${old[index]}`)).status, 404);
    await assertAgreement(stack, api);
  });

  test("kill -9 of NATS in mid-upload keeps the old file and no temporary one", async () => {
    const id = await api.create();
    await api.execute(id, "echo old > /root/target");
    const { ended } = await startEndlessUpload(api, id, "/root/target");
    await outage(async () => {
      assert.ok([503, "broken"].includes(await ended));
    });
    await usable(api, id);
    await until("no temporary file", async () => (await temporaryFiles(api, id)).length === 0);
    assert.equal((await api.execute(id, "cat /root/target")).stdout, "old\n");
    await api.delete(id);
  });

  test("what changed while a gateway had lost NATS is known to it afterwards", async () => {
    const apiKey = `sg_other_${"k".repeat(32)}`;
    const other = new Api({ url: stack.url, apiKey });
    assert.equal((await other.call("GET", "/v1/sandboxes/list")).status, 401);
    stack.gateway.signal("SIGSTOP");
    try {
      await stack.nats.kill9();
      await stack.nats.start();
      await storeKey(apiKey);
    } finally {
      stack.gateway.signal("SIGCONT");
    }
    await until("the new key", async () => (await other.call("GET", "/v1/sandboxes/list")).status === 200);
    // The worker finds its way back by itself, perhaps later than the gateway.
    await api.delete(await until("a sandbox", () => api.create()));
  });

  test("a container that stops while NATS is away comes back, and the worker lives on", async () => {
    const id = await api.create();
    const pid = stack.worker.pid;
    await outage(async () => {
      await stack.endContainer(await stack.containerOf(id), ["kill"]);
      await until("the container again", async () => (await stack.containers())[0]?.running);
    });
    await usable(api, id);
    assert.equal(stack.worker.pid, pid);
    assert.equal((await api.call("GET", `/v1/sandboxes/${id}`)).body.status, "running");
    await api.delete(id);
  });
}
