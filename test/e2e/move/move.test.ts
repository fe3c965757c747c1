/** Sandboxes move to another worker, and a worker is emptied. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Api, collect } from "../../helpers/api.ts";
import { Cli } from "../../helpers/cli.ts";
import { expectError, expectOk } from "../../helpers/expect.ts";
import { fixture } from "../../helpers/fixture.ts";
import { hostState } from "../../helpers/host-state.ts";
import { Comparison } from "../../helpers/reference.ts";
import { SnapshotCalls } from "../../helpers/snapshots.ts";
import { describeSandbox, differences, makeEveryKind } from "../../helpers/trees.ts";
import { until } from "../../helpers/until.ts";
import { MoveRig } from "./rig.ts";

// So slow that a sandbox with some megabytes is certainly held while the test looks.
const rig = await fixture(MoveRig.open("move", { SANDGATE_SNAPSHOT_ARCHIVE_BYTES_PER_S: String(2 * 1024 ** 2) }));
const { api, stack } = rig;
const cli = fixture(new Cli(stack));
const admin = (...args: string[]) => cli.run("admin", ...args);

/** A socket is nothing without the process that listens, and does not move. */
async function assertFiles(id: string, files: readonly string[]): Promise<void> {
  const unlike = differences(await describeSandbox(api, id), files);
  assert.deepEqual(
    unlike.filter((line) => !line.includes("/root/tree/socket")),
    [],
  );
}

test("a moved sandbox is the same one on another worker, with its files, and nothing of it stays behind", async () => {
  const id = await api.create({ name: "mover", env_vars: { GREETING: "hello" }, resources: { cpus: 2, memory: 300, storage: 3 } });
  await makeEveryKind(api, id);
  const before = { files: await describeSandbox(api, id), shown: expectOk(await api.call("GET", `/v1/sandboxes/${id}`)), owner: await rig.ownerOf(id) };
  const running = await api.stream(id, "echo begun; sleep 600");
  const ended = collect(running);
  const path = `/v1/admin/sandboxes/${id}/move`;
  const moved = await fetch(stack.url + path, { method: "POST", headers: { "x-api-key": stack.apiKey, "content-type": "application/json" }, body: "{}" });
  const answer = (await new Comparison().expectDocumented("POST", path, moved)) as Record<string, unknown>;
  const target = rig.otherThan(before.owner);
  assert.deepEqual([answer.id, answer.from, answer.to, answer.ended_commands, answer.ended_sessions], [id, before.owner, target, 1, 0]);
  assert.equal((await ended).last?.code, "unavailable");
  assert.match(String((await ended).last?.error), /moved to another worker/);
  assert.equal(await rig.settled(id), target);
  // Its processes did not come along, since such workers cannot take memory.
  const { memory_reason: why, ...shown } = expectOk(await api.call<{ memory_reason: unknown }>("GET", `/v1/sandboxes/${id}`));
  assert.match(String(why), /service of systemd/);
  assert.deepEqual([answer.memory_restored, answer.memory_reason], [false, why]);
  assert.deepEqual({ ...shown, memory_reason: null }, before.shown);
  await assertFiles(id, before.files);
  assert.equal((await api.execute(id, "echo $GREETING")).stdout, "hello\n");
  assert.deepEqual(hostState(rig.processOf(before.owner)).roots, []);
  await until("nothing is left in the layers of its former worker", () => hostState(rig.processOf(before.owner)).layers.length === 0);
  // And back again, as often as one likes.
  expectOk(await rig.move(id, { worker_id: before.owner }));
  assert.equal(await rig.settled(id), before.owner);
  await assertFiles(id, before.files);
  const { logs } = expectOk(await api.call<{ logs: { command: string }[] }>("GET", `/v1/sandboxes/logs?sandbox_id=${id}`));
  assert.ok(
    logs.some(({ command }) => command === "echo $GREETING"),
    "commands on the other worker are still in its log",
  );
  await api.delete(id);
});

test("while it moves its state says so, calls are told to come again, and it can be neither deleted nor moved", async () => {
  const id = await api.create({ name: "slow" });
  await api.execute(id, "head -c 12000000 /dev/urandom > /root/large; (while :; do date +%s%N >> /root/ticks; sleep 0.05; done) >/dev/null 2>&1 &");
  const moving = rig.move(id);
  await until("it is moving", async () => (await rig.all()).find((one) => one.id === id)?.status === "moving");
  const { status, headers, body } = await api.call("POST", `/v1/sandboxes/${id}/execute`, { command: "true" });
  assert.deepEqual([status, headers.get("retry-after")], [503, "2"], JSON.stringify(body));
  expectError(await api.call("DELETE", `/v1/sandboxes/${id}/delete`, {}), "unavailable", /being moved/);
  expectError(await rig.move(id), "unavailable", /being moved/);
  expectError(await new SnapshotCalls(api).snapshot(id), "unavailable", /being moved/);
  const listed = expectOk(await api.call<{ data: { id: string; status: string }[] }>("GET", "/v1/sandboxes/list")).data;
  assert.equal(listed.find((one) => one.id === id)?.status, "moving");
  expectOk(await moving);
  const owner = await rig.settled(id);
  assert.equal((await api.execute(id, "stat -c %s /root/large")).stdout, "12000000\n");
  const other = new Api({ url: stack.urls[1] as string, apiKey: stack.apiKey });
  assert.equal((await other.execute(id, "echo there")).stdout, "there\n", "the other gateway finds it as well");
  expectError(await rig.move(id, { worker_id: owner }), "unavailable", /no other worker/);
  await api.delete(id);
});

test("snapshots of it stay, and count no less afterwards; the key's limit counts it once", async () => {
  const calls = new SnapshotCalls(api);
  const id = await api.create({ name: "keeper" });
  await api.execute(id, "echo one > /root/state");
  const first = await calls.take(id, { name: "before" });
  expectOk(await rig.move(id));
  await rig.settled(id);
  await api.execute(id, "echo two > /root/state");
  const second = await calls.take(id, { name: "after" });
  assert.deepEqual((await calls.list()).data.map(({ name }) => name).sort(), ["after", "before"]);
  for (const [snapshot, text] of [
    [first, "one\n"],
    [second, "two\n"],
  ] as const) {
    const { id: copy } = await calls.restored(snapshot.id);
    assert.equal((await api.execute(copy, "cat /root/state")).stdout, text);
    await api.delete(copy);
  }
  for (const snapshot of [first, second]) expectOk(await calls.delete(snapshot.id));
  await api.delete(id);
  assert.deepEqual(await rig.all(), []);
});

test("drain --move empties a worker with a line for each sandbox, and fails where something stays", async () => {
  const ids = [await api.create({ name: "one" }), await api.create({ name: "two" }), await api.create({ name: "three" })];
  for (const id of ids) await api.execute(id, `echo ${id} > /root/mine`);
  const [first = ""] = ids;
  const emptied = await rig.ownerOf(first);
  const target = rig.otherThan(emptied);
  const there = (await rig.all()).filter((one) => one.worker_id === emptied).map(({ id }) => id);
  const drained = await admin("drain", emptied, "--move");
  assert.equal(drained.exitCode, 0, drained.stderr);
  for (const id of there) assert.match(drained.stdout, new RegExp(`^${id} \\(.*\\) is on ${target} with its files \\(.+\\)$`, "m"));
  assert.match(drained.stdout, new RegExp(`^${emptied} is empty; moved: ${there.length}\\.$`, "m"));
  for (const id of ids) assert.equal(await rig.settled(id), target);
  for (const id of ids) assert.equal((await api.execute(id, "cat /root/mine")).stdout, `${id}\n`);

  // The first one takes nothing, so everything stays on the second one.
  const stays = await admin("drain", target, "--move", "--json");
  assert.equal(stays.exitCode, 1);
  const lines = stays.stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as { id: string; moved: boolean; error: string });
  assert.deepEqual(lines.map(({ id, moved }) => `${id} ${moved}`).sort(), ids.map((id) => `${id} false`).sort());
  assert.match(lines[0]?.error ?? "", /no other worker has room/);
  assert.match(stays.stderr, /3 sandboxes have stayed/);
  for (const id of ids) assert.equal(await rig.settled(id), target);
  assert.equal((await admin("drain", target, "--move", "--undo")).exitCode, 2);
  for (const worker of [emptied, target]) assert.equal((await admin("drain", worker, "--undo")).exitCode, 0);
  expectOk(await api.call("DELETE", "/v1/sandboxes/delete-all"));
});

test("what does not run, or is nobody's, cannot be moved; only operators can", async () => {
  expectError(await rig.move("sb_00000000000000000000000000"), "not_found");
  const id = await api.create();
  expectError(await rig.move(id, { worker_id: "none" }), "unavailable", /no other worker/);
  await api.delete(id);
});
