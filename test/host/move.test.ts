/**
 * Processes travel: two machines with CRIU, between which sandboxes move while their programs go on, and snapshots with memory of a
 * machine that is gone continue on the other.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fixture } from "../helpers/fixture.ts";
import { until } from "../helpers/until.ts";
import { Client } from "./client.ts";
import { type CounterState, Counters, counterPattern } from "./counter.ts";
import { bridgeCriu } from "./criu.ts";
import { programDir } from "./installed.ts";
import { Machine, volumeDir } from "./machine.ts";
import { Network } from "./network.ts";

const network = await fixture(Network.start());
const [one, two] = await Promise.all(["mover-one", "mover-two"].map((name, index) => fixture(Machine.start(name, { network, number: index + 1 }))));
assert.ok(one && two);
const client = new Client((...argv) => network.run(...argv), `http://${Network.address(1)}:8080`, one.key);
const counters = new Counters(client);
const ask = counters.ask.bind(counters);
const faultFile = "/run/sandgate-fault";
const settings = [
  `SANDGATE_VOLUME=${volumeDir}`,
  `SANDGATE_TEST_FAULT=${faultFile}`,
  "SANDGATE_POOL_SIZE=0",
  "SANDGATE_HOST=0.0.0.0",
  "SANDGATE_SNAPSHOT_ARCHIVE_IMAGES=false",
];
const key = "/var/lib/sandgate/supervisor/memory-key";

interface Told {
  readonly id: string;
  readonly worker_id: string;
  readonly status: string;
  readonly memory_restored: boolean;
  readonly memory_reason: string | null;
  readonly memory: boolean;
  readonly size_bytes: number;
  readonly to: string;
}

/** It has counted on without a jump or a repetition, and is the one from before. */
async function assertGoesOn(id: string, before: CounterState): Promise<void> {
  const now = await until("the program answers", () => counters.ask(id), 60_000);
  assert.equal(now.mark, before.mark);
  assert.ok(now.whole && now.count >= before.count);
  await counters.assertNoJump(id);
  await until("it counts on", async () => (await counters.ask(id)).count > now.count);
}

async function counter(): Promise<string> {
  const id = await client.create();
  await counters.start(id, 20);
  return id;
}
const machineOf = (worker: string): Machine => (worker === there ? two : one);
const ownerOf = async (id: string): Promise<string> =>
  (await client.call<{ data: Told[] }>("/v1/admin/sandboxes?page_size=100")).data.find((each) => each.id === id)?.worker_id ?? assert.fail("no such sandbox");
const images = async (machine: Machine): Promise<string[]> =>
  (await machine.shell("ls /var/lib/sandgate/memory 2> /dev/null || true")).split("\n").filter(Boolean);
const programs = (machine: Machine): Promise<string> => machine.shell(`pgrep -fc '${counterPattern}' || true`);
async function move(id: string): Promise<Told> {
  const moved = await client.call<Told>(`/v1/admin/sandboxes/${id}/move`, {});
  assert.equal(moved.error, undefined, JSON.stringify(moved.error));
  return moved;
}

/** The worker on the second machine. */
let there = "";
let sandbox = "";

test("both machines have the key of the installation, which no worker can read", async (context) => {
  for (const machine of [one, two]) context.diagnostic(await bridgeCriu(machine));
  await one.install([], settings);
  await one.shell(`echo SANDGATE_NATS_HOST=${Network.address(1)} >> /etc/sandgate/sandgate.env; ${programDir}/systemd/install`);
  const token = (await one.run("sandgate-admin", "join-token")).trim().split(" ").at(-1) ?? "";
  await two.install(["--join", token], settings);
  there = /SANDGATE_WORKER_ID=(\S+)/.exec(await two.run("cat", "/etc/sandgate/sandgate.env"))?.[1] ?? assert.fail();
  assert.equal(await one.run("cat", key), await two.run("cat", key));
  for (const machine of [one, two]) {
    assert.match(await machine.run("stat", "--format=%a %u", key), /^600 0$/);
    const secret = (await machine.run("cat", key)).trim();
    const asWorker = ["setpriv", "--reuid", "sandgate", "--regid", "sandgate", "--init-groups", "--"];
    await assert.rejects(machine.run(...asWorker, "cat", key), /Permission denied/);
    await assert.rejects(machine.run(...asWorker, "ls", "/var/lib/sandgate/memory"), /Permission denied|No such file/);
    assert.equal(await machine.shell(`grep -rls -- '${secret}' /run/sandgate /etc/sandgate /run/credentials 2> /dev/null || true`), "");
  }
  const present = async (): Promise<number> =>
    (await client.call<{ data: { present: boolean }[] }>("/v1/admin/workers")).data.filter((each) => each.present).length;
  await until("both workers", async () => (await present()) === 2, 60_000);
});

test("a sandbox moves with its processes, which go on from the instant in which they stood still", async () => {
  sandbox = await counter();
  for (let round = 0; round < 2; round++) {
    const [before, from] = [await ask(sandbox), await ownerOf(sandbox)];
    const moved = await move(sandbox);
    assert.deepEqual([moved.memory_restored, moved.memory_reason], [true, null], JSON.stringify(moved));
    assert.equal(await ownerOf(sandbox), moved.to);
    await assertGoesOn(sandbox, before);
    await until("nothing of it runs where it was", async () => (await programs(machineOf(from))).trim() === "0");
    for (const machine of [one, two]) await until("no image is left", async () => (await images(machine)).length === 0, 60_000);
  }
});

test("drain --move takes processes along, and says where it could not", async () => {
  const idle = await client.create();
  const [before, worker] = [await ask(sandbox), await ownerOf(sandbox)];
  if ((await ownerOf(idle)) !== worker) await move(idle);
  const said = await one.run("sandgate-admin", "drain", "--move", worker);
  assert.match(said, new RegExp(`^${sandbox} \\(.*\\) is on \\S+ with its processes$`, "m"));
  assert.match(said, new RegExp(`^${idle} \\(.*\\) is on \\S+ with its files \\(nothing runs in the sandbox\\)$`, "m"));
  await assertGoesOn(sandbox, before);
  await one.run("sandgate-admin", "drain", worker, "--undo");
  await client.delete(`/v1/sandboxes/${idle}/delete`);
});

for (const [what, point, side] of [
  ["the source, when all is dumped", "snapshot.dumped", "source"],
  ["the source, when all is stored", "move.held", "source"],
  ["the target, when it has the image", "memory.fetched", "target"],
  ["the target, when it is confirmed", "move.confirming", "target"],
  ["the target, when a copy runs", "restore.copied", "target"],
] as const) {
  test(`kill -9 of ${what}: one sandbox goes on with its processes, and nothing is left`, async () => {
    const [before, from] = [await ask(sandbox), await ownerOf(sandbox)];
    const [source, target] = from === there ? [two, one] : [one, two];
    const machine = side === "source" ? source : target;
    const deaths = (): Promise<string> => machine.run("systemctl", "show", "--property=NRestarts", "sandgate-worker.service");
    const former = await deaths();
    await machine.shell(`printf %s ${point} > ${faultFile}`);
    const moving = client.call(`/v1/admin/sandboxes/${sandbox}/move`, {}).catch(() => undefined);
    try {
      await until("a worker has died", async () => (await deaths()) !== former, 60_000);
    } finally {
      await machine.shell(`rm -f ${faultFile}`);
    }
    await moving;
    await until("it runs again", async () => (await client.call<Told>(`/v1/sandboxes/${sandbox}`)).status === "running" && ask(sandbox), 120_000);
    await assertGoesOn(sandbox, before);
    await until("one program runs", async () => Number(await programs(one)) + Number(await programs(two)) === 1, 60_000);
    for (const each of [one, two]) await until("no image is left", async () => (await images(each)).length === 0, 90_000);
  });
}

test("kill -9 of the helper during a transfer: the sandbox goes on, without its processes only if that is said, and nothing is left", async () => {
  const [before, from] = [await ask(sandbox), await ownerOf(sandbox)];
  const source = machineOf(from);
  const moving = client.call<Told>(`/v1/admin/sandboxes/${sandbox}/move`, {});
  await until("it is moving", async () => (await client.call<Told>(`/v1/sandboxes/${sandbox}`)).status !== "running", 30_000);
  await source.shell("systemctl kill --signal=KILL 'sandgate-helper@*' || true");
  await moving;
  const now = (): Promise<Told> => client.call<Told>(`/v1/sandboxes/${sandbox}`);
  await until("it runs again", async () => (await now()).status === "running", 120_000);
  const { memory_restored, memory_reason } = await now();
  if (memory_restored) await assertGoesOn(sandbox, before);
  else {
    assert.ok(memory_reason, "it is said why");
    const counts = (await client.output(sandbox, "cat /root/counts")).trim().split("\n");
    assert.ok(counts.length >= before.count, "its files are there");
    await client.delete(`/v1/sandboxes/${sandbox}/delete`);
    sandbox = await counter();
  }
  for (const each of [one, two]) await until("no image is left", async () => (await images(each)).length === 0, 90_000);
});

test("an archived snapshot continues with its processes on the other worker when its own is gone", async () => {
  const [before, owner] = [await ask(sandbox), await ownerOf(sandbox)];
  if (owner !== there) await move(sandbox);
  const taken = await client.call<Told>(`/v1/sandboxes/${sandbox}/snapshot`, { memory: "require" });
  assert.equal(taken.memory, true, JSON.stringify(taken.error));
  assert.ok(taken.size_bytes > 20 * 1024 ** 2, String(taken.size_bytes));
  const pending =
    "curl -sS http://127.0.0.1:9464/metrics | awk '/^sandgate_worker_archive_pending_bytes/ { sum += $NF; found = 1 } END { print found ? sum : \"?\" }'";
  // The metrics of workers are those of their last heartbeats, so that nothing may be pending in them yet.
  await sleep(10_000);
  await until("it is archived", async () => (await one.shell(pending)).trim() === "0", 300_000);
  await two.shell("systemctl stop sandgate-worker.service");
  const gone = async (): Promise<boolean> =>
    !(await client.call<{ data: { id: string; present: boolean }[] }>("/v1/admin/workers")).data.some((each) => each.id === there && each.present);
  await until("its worker is gone", gone, 60_000);
  const made = await client.call<Told>(`/v1/snapshots/${taken.id}/restore`, { memory: "require" });
  assert.equal(made.error, undefined, JSON.stringify(made.error));
  assert.equal(made.memory_restored, true);
  await assertGoesOn(made.id, before);
  await until("the image that was fetched is removed", async () => (await images(one)).length === 0, 60_000);

  // Another installation's key opens nothing, and that is said.
  await one.shell(`cp ${key} ${key}.kept; head -c 32 /dev/urandom | base64 | tr '+/' '-_' | tr -d '=' > ${key}`);
  const refused = await client.call<Told>(`/v1/snapshots/${taken.id}/restore`, {});
  assert.equal(refused.memory_restored, false);
  assert.match(refused.memory_reason ?? "", /cannot be trusted/);
  await one.shell(`rm ${key}`);
  const keyless = await client.call<Told>(`/v1/snapshots/${taken.id}/restore`, {});
  assert.match(keyless.memory_reason ?? "", /does not have the key/);
  await one.shell(`mv ${key}.kept ${key}`);
  await two.shell("systemctl start sandgate-worker.service");
  await until("its worker is back", async () => !(await gone()), 90_000);
  await client.delete(`/v1/snapshots/${taken.id}`);
  for (const each of [one, two]) await until("no image is left", async () => (await images(each)).length === 0, 90_000);
});
