/** The pool of containers that wait, without files, to become sandboxes. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Api } from "../../helpers/api.ts";
import { fixture } from "../../helpers/fixture.ts";
import { startStack } from "../../helpers/stack.ts";

const stack = await fixture(startStack({ name: "pool", settings: { SANDGATE_POOL_SIZE: "2", SANDGATE_POOL_SIZE_MAX: "6" } }));
const api = new Api(stack);

async function waitForContainers(count: number): Promise<void> {
  for (const deadline = Date.now() + 20_000; (await stack.containers()).length !== count; ) {
    assert.ok(Date.now() < deadline, `there are not ${count} containers: ${JSON.stringify(await stack.containers())}`);
  }
}

test("a sandbox of the default size is a container that was waiting, and the pool is filled again", async () => {
  await waitForContainers(2);
  const waiting = (await stack.containers()).map(({ sandboxId }) => sandboxId);
  assert.deepEqual((await api.call<{ data: unknown[] }>("GET", "/v1/sandboxes/list")).body.data, [], "what waits is nobody's sandbox");
  const id = await api.create({ name: "taken", env_vars: { COLOUR: "blue" } });
  assert.ok(waiting.includes(id));
  assert.equal((await api.execute(id, "echo $COLOUR")).stdout, "blue\n");
  await waitForContainers(3);
  await api.delete(id);
  await waitForContainers(2);
});

test("a sandbox that asks for something else gets a container of its own", async () => {
  await waitForContainers(2);
  const waiting = (await stack.containers()).map(({ sandboxId }) => sandboxId);
  const ids = await Promise.all([api.create({ network: { access: "none" } }), api.create({ resources: { memory: 256 } })]);
  for (const id of ids) assert.ok(!waiting.includes(id));
  await Promise.all(ids.map((id) => api.delete(id)));
});

test("a taken sandbox survives the kill of its worker, what only waited is replaced", async () => {
  await waitForContainers(2);
  const id = await api.create();
  await api.execute(id, "echo kept > /root/file");
  await stack.worker.kill9();
  await stack.worker.start();
  await stack.ready();
  assert.equal((await api.execute(id, "cat /root/file")).stdout, "kept\n");
  await waitForContainers(3);
  await api.delete(id);
});

test("a stopped worker leaves no waiting container behind", async () => {
  await waitForContainers(2);
  await stack.worker.stop();
  await waitForContainers(0);
});

test("the pool grows with what is asked for, of the size that is asked for, within its bounds", async () => {
  await stack.worker.start();
  await stack.ready();
  await waitForContainers(2);
  const wanted = { resources: { memory: 256 } };
  const ids = await Promise.all(Array.from({ length: 3 }, () => api.create(wanted)));
  await Promise.all(ids.map((id) => api.delete(id)));
  await waitForContainers(5);
  const waiting = (await stack.containers()).map(({ sandboxId }) => sandboxId);
  const id = await api.create(wanted);
  assert.ok(waiting.includes(id), "one of those that were waiting");
  assert.deepEqual((await api.execute(id, "cat /proc/sys/kernel/shmmax")).stdout.trim(), String(256 * 1024 ** 2), "with the limits of its size");
  const more = await Promise.all(Array.from({ length: 12 }, () => api.create(wanted)));
  await Promise.all([id, ...more].map((each) => api.delete(each)));
  await waitForContainers(6);
});
