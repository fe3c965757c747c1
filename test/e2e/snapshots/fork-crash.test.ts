/** Forks on a worker with little room, and forks whose gateway or worker dies: on one installation. */
import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, test } from "node:test";
import { newId } from "../../../shared/util/ids.ts";
import { Api } from "../../helpers/api.ts";
import { Cli } from "../../helpers/cli.ts";
import { expectError, expectOk } from "../../helpers/expect.ts";
import { atEnd, fixture } from "../../helpers/fixture.ts";
import { isOnVolume, untilHostHas } from "../../helpers/host-state.ts";
import { listOf, plain, usable } from "../../helpers/resilience.ts";
import { type Copy, SnapshotCalls } from "../../helpers/snapshots.ts";
import { startStack } from "../../helpers/stack.ts";
import { until } from "../../helpers/until.ts";

const roomFor = 5;
const faults = mkdtempSync(join(tmpdir(), "sandgate-fork-faults-"));
chmodSync(faults, 0o755);
atEnd(() => rmSync(faults, { recursive: true }));
const fault = join(faults, "point");
const settings = { ...plain, SANDGATE_SANDBOXES_MAX: String(roomFor), SANDGATE_TEST_FAULT: fault };
const stack = await fixture(startStack({ name: "fork", gateways: 2, settings }));
const [first, second] = stack.urls as [string, string];
const api = new Api({ url: second, apiKey: stack.apiKey });
const calls = new SnapshotCalls(api);
const doomed = new SnapshotCalls(new Api({ url: first, apiKey: stack.apiKey }));
const source = await api.create({ name: "source" });
await api.execute(source, "echo kept > /root/kept");

const taken = (): number => stack.worker.lines.filter((line) => line.includes('"snapshot_taken"')).length;
const madeOf = (copies: readonly Copy[]): string[] => copies.flatMap(({ sandbox }) => sandbox?.id ?? []);
const removeCopies = async (): Promise<void> => {
  for (const { id } of await listOf(api)) if (id !== source) await api.delete(id);
};
/** Asserts that only the source and these copies exist, and that nothing is left of the snapshot but what copies need. */
async function assertOnly(copies: readonly string[]): Promise<void> {
  const all = [source, ...copies].sort();
  await until("every sandbox runs", async () => {
    const listed = await listOf(api);
    return (
      listed
        .map(({ id, status }) => `${id} ${status}`)
        .sort()
        .join() === all.map((id) => `${id} running`).join()
    );
  });
  // On a volume, a copy begins with the layer as its own files; elsewhere it lies over it.
  await untilHostHas(stack.worker, { layers: copies.length > 0 && !isOnVolume(stack.worker) ? 1 : 0, roots: all });
  assert.deepEqual((await calls.list()).data, []);
  for (const id of copies) assert.equal((await api.execute(id, "cat /root/kept")).stdout, "kept\n");
}

// A test that failed leaves the next one its room.
afterEach(async () => {
  await usable(api, source);
  await removeCopies();
});

test("copies for which the worker has no room fail on their own; the others are made, and the snapshot goes", async () => {
  const { data } = expectOk(await calls.fork(source, { count: roomFor + 1 }), 201);
  assert.equal(data.length, roomFor + 1);
  const failed = data.flatMap(({ error }) => error ?? []);
  assert.equal(failed.length, 2, JSON.stringify(data));
  for (const { code, message } of failed) assert.match(`${code}: ${message}`, /^unavailable: .*no room for another sandbox/);
  assert.equal(taken(), 1);
  await assertOnly(madeOf(data));
  await until("the gateway knows that the worker is full", async () => (await calls.fork(source, { count: 1 })).status === 503);
  const before = taken();
  expectError(await calls.fork(source, { count: 1 }), "unavailable", "the worker of this sandbox has no room for another sandbox");
  assert.equal(taken(), before, "no snapshot is taken for copies that cannot be made");
  await removeCopies();
  await assertOnly([]);
});

test("the command line prints the ids of the copies that were made, says why others were not, and fails", async () => {
  using cli = new Cli(api);
  await until("the gateways know that there is room", async () => (await fetch(`${second}/readyz`)).ok);
  const { exitCode, stdout, stderr } = await cli.run("fork", source, "--count", String(roomFor + 1));
  assert.equal(exitCode, 1, stderr);
  assert.equal(stdout.split("\n").length, roomFor - 1);
  assert.equal(stderr.match(/no room for another sandbox.* \(req_\w+\)$/gm)?.length, 2, stderr);
  assert.deepEqual(
    stdout.split("\n").sort(),
    (await listOf(api))
      .map(({ id }) => id)
      .filter((id) => id !== source)
      .sort(),
  );
  await removeCopies();
  await assertOnly([]);
});

for (const afterMs of [60, 250, 700]) {
  test(`a fork whose gateway dies after ${afterMs} ms leaves no snapshot, and its repetition tells what was made`, async () => {
    const key = { "idempotency-key": newId("request") };
    const cut = doomed.fork(source, { count: 3 }, key).catch(() => undefined);
    await new Promise((resolve) => setTimeout(resolve, afterMs));
    await stack.gateway.kill9();
    await cut;
    await stack.gateway.start();
    await stack.ready();
    const { data } = expectOk(await calls.fork(source, { count: 3 }, key), 201);
    assert.equal(data.length, 3);
    for (const { error } of data) if (error) assert.match(error.message, /^the gateway was lost before it had made this copy$/);
    assert.ok(madeOf(data).length > 0);
    await assertOnly(madeOf(data));
    await removeCopies();
    await assertOnly([]);
  });
}

for (const point of ["snapshot.copied", "snapshot.recorded", "create.mounted", "create.started"] as const) {
  test(`a fork whose worker dies at ${point} leaves no snapshot, and only copies that were acknowledged`, async () => {
    const { pid } = stack.worker;
    writeFileSync(fault, point);
    let answer: Awaited<ReturnType<typeof calls.fork>>;
    try {
      answer = await calls.fork(source, { count: 3 });
      await until(`the worker dies at ${point}`, () => stack.worker.pid !== pid || !isAlive(pid));
    } finally {
      rmSync(fault);
    }
    await stack.worker.start();
    await usable(api, source);
    if (point.startsWith("snapshot")) expectError(answer, "unavailable");
    else assert.equal(expectOk(answer, 201).data.length, 3);
    await assertOnly(point.startsWith("snapshot") ? [] : madeOf(answer.body.data));
    await removeCopies();
    await assertOnly([]);
  });
}

function isAlive(pid: number | undefined): boolean {
  try {
    return pid !== undefined && process.kill(pid, 0);
  } catch {
    return false;
  }
}
