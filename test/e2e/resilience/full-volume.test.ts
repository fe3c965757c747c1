/** A volume without room that cannot grow: writers get errors, what makes nothing new works, and nothing is forgotten. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Api } from "../../helpers/api.ts";
import { expectOk } from "../../helpers/expect.ts";
import { fixture } from "../../helpers/fixture.ts";
import { isOnVolume, untilHostHas } from "../../helpers/host-state.ts";
import { plain, usable } from "../../helpers/resilience.ts";
import { SnapshotCalls } from "../../helpers/snapshots.ts";
import { startStack } from "../../helpers/stack.ts";
import { until } from "../../helpers/until.ts";

const settings = { ...plain, SANDGATE_SNAPSHOT_ARCHIVE: "false", SANDGATE_DISK_FLOOR_BYTES: "0", SANDGATE_VOLUME_BYTES_MAX: String(1024 ** 3) };
const stack = await fixture(startStack({ name: "full-volume", settings }));
const api = new Api(stack);
const calls = new SnapshotCalls(api);

test("a sandbox that fills the volume gets an error, and its deletion and that of its snapshots give the room back", async () => {
  assert.ok(isOnVolume(stack.worker));
  const [greedy, other] = [await api.create(), await api.create()];
  await api.execute(other, "echo kept > /root/kept");
  const [first, kept] = [await calls.take(greedy), await calls.take(other)];
  const { stderr } = await api.execute(greedy, "cat /dev/zero > /root/large", { timeout: 100 });
  assert.match(stderr, /No space left on device/);
  assert.equal((await api.execute(other, "cat /root/kept")).stdout, "kept\n");
  const { status, body } = await calls.snapshot(greedy);
  assert.ok(status === 201 || status === 507, JSON.stringify(body));

  await stack.worker.kill9();
  await stack.worker.start();
  await stack.ready();
  await usable(api, other);
  expectOk(await calls.delete(first.id));
  if (status === 201) expectOk(await calls.delete(body.id));
  await api.delete(greedy);
  await until(
    "there is room again",
    async () => (await api.execute(other, "head -c 300M /dev/zero > /root/more && rm /root/more && echo room")).stdout === "room\n",
  );
  const restored = (await calls.restored(kept.id)).id;
  assert.equal((await api.execute(restored, "cat /root/kept")).stdout, "kept\n");
  expectOk(await calls.delete(kept.id));
  await Promise.all([other, restored].map((id) => api.delete(id)));
  await untilHostHas(stack.worker, { layers: 0, roots: [] });
});
