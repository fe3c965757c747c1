/** A worker that is asked to stop: no new calls, running ones finish or end with an error, files stay. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Answer, Api, chunksOf, collect } from "../../helpers/api.ts";
import { answers, assertExplicitEnd, assertUnavailable, runsIn, startMarked, usable, withSettings } from "../../helpers/resilience.ts";
import type { Stack } from "../../helpers/stack.ts";
import { until } from "../../helpers/until.ts";

export function drainTests(stack: Stack): void {
  const api = new Api(stack);

  test("SIGTERM lets a running stream finish and refuses new calls meanwhile", async () => {
    const id = await api.create();
    // Ends when the test says so, not by the clock.
    const chunks = chunksOf(await api.stream(id, "echo started; until [ -e /root/go ]; do sleep 0.1; done; echo done"));
    assert.deepEqual((await chunks.next()).value, { stdout: "started\n" });
    const stopped = stack.worker.stop();
    await until("503 for new calls", async () => {
      const answer = await answers(api.call("POST", `/v1/sandboxes/${id}/execute`, { command: "true" }));
      if (answer.status === 200) return false;
      assertUnavailable(answer);
      return true;
    });
    assertUnavailable(await answers(create()));
    assert.equal((await fetch(`${stack.url}/readyz`)).status, 503);
    const [container] = await stack.containers();
    await stack.containerPodman(["exec", container?.id ?? "", "touch", "/root/go"], container?.workerId);
    const rest: unknown[] = [];
    for await (const chunk of chunks) rest.push(chunk);
    assert.deepEqual(rest, [{ stdout: "done\n" }, { exit_code: 0 }]);
    await stopped;
    assert.equal((await stack.containers())[0]?.running, true, "sandboxes outlive their worker");
    await stack.worker.start();
    await usable(api, id);
    await api.delete(id);
  });

  test("a stream that outlasts the draining ends with an error, its command with it", async () => {
    const id = await api.create();
    const impatient = withSettings(stack.worker, { SANDGATE_DRAIN_MS: "500" });
    await stack.worker.stop();
    await impatient.start();
    try {
      await usable(api, id);
      const { marked, outcome } = await startMarked(api, id);
      await impatient.stop();
      const end = await outcome;
      assert.equal(end.kind, "line");
      assertExplicitEnd(end);
      await marked.gone();
    } finally {
      await impatient.kill9();
      await stack.worker.start();
    }
    await usable(api, id);
    assert.equal(await runsIn(api, id), 1);
    await api.delete(id);
  });

  test("a worker that is told to stop its sandboxes starts them again with their files", async () => {
    const [id, removed] = [await api.create({ env_vars: { COLOUR: "green" } }), await api.create()];
    await api.execute(id, "echo kept > /root/file");
    const stopping = withSettings(stack.worker, { SANDGATE_STOP_SANDBOXES: "true" });
    await stack.worker.stop();
    await stopping.start();
    try {
      await usable(api, id);
      await stopping.stop();
      assert.deepEqual(
        (await stack.containers()).map(({ running }) => running),
        [false, false],
      );
    } finally {
      await stopping.kill9();
      await stack.worker.start();
    }
    await usable(api, id);
    assert.equal((await api.execute(id, "cat /root/file; echo $COLOUR")).stdout, "kept\ngreen\n");
    assert.deepEqual((await collect(await api.stream(id, "echo streams"))).chunks, [{ stdout: "streams\n" }, { exit_code: 0 }]);
    for (const each of [id, removed]) assert.equal((await api.call("DELETE", `/v1/sandboxes/${each}/delete`)).status, 200);
    assert.deepEqual(await stack.containers(), []);
  });

  test("creates that run when the worker is asked to stop are finished or undone", async () => {
    const calls = Array.from({ length: 4 }, () => create());
    await until("a container in the making", async () => (await stack.containers()).length > 0);
    await stack.worker.stop();
    await assertAsAnswered(calls);
  });

  test("what a worker answered before it left counts at a gateway that reads it together with the news", async () => {
    const id = await api.create();
    const chunks = chunksOf(await api.stream(id, "echo started; until [ -e /root/go ]; do sleep 0.1; done; echo done"));
    assert.deepEqual((await chunks.next()).value, { stdout: "started\n" });
    const call = create();
    await until("a container in the making", async () => (await stack.containers()).length > 1);
    stack.gateway.signal("SIGSTOP");
    try {
      const container = await stack.containerOf(id);
      await stack.containerPodman(["exec", container.id, "touch", "/root/go"]);
      await stack.worker.stop();
    } finally {
      stack.gateway.signal("SIGCONT");
    }
    const rest: unknown[] = [];
    for await (const chunk of chunks) rest.push(chunk);
    assert.deepEqual(rest, [{ stdout: "done\n" }, { exit_code: 0 }]);
    const [created] = await assertAsAnswered([call], [id]);
    assert.equal(created?.status, 201);
  });

  function create(): Promise<Answer<{ id: string }>> {
    return api.call<{ id: string }>("POST", "/v1/sandboxes/create", { image: "default" });
  }

  /** Starts the worker again. Of the sandboxes, there are those that clients were told of, and no others. */
  async function assertAsAnswered(calls: readonly Promise<Answer<{ id: string }>>[], before: readonly string[] = []): Promise<Answer[]> {
    const created = await Promise.all(calls.map((call) => answers(call)));
    await stack.worker.start();
    await stack.ready();
    for (const { status, body } of created) assert.ok([201, 503].includes(status), `${status}: ${JSON.stringify(body)}`);
    const ids = [...before, ...created.filter(({ status }) => status === 201).map(({ body }) => body.id as string)];
    for (const id of ids) await usable(api, id);
    const found = (await stack.containers()).map(({ sandboxId }) => sandboxId).sort();
    await api.call("DELETE", "/v1/sandboxes/delete-all");
    assert.deepEqual(found, ids.sort(), JSON.stringify({ found, created }));
    return created;
  }
}
