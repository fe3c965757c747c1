/** An installation with three NATS servers, under load while they are killed, stopped and cut off. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { appDir } from "../../shared/programs.mjs";
import { plan } from "../faults/plan.ts";
import { fixture } from "../helpers/fixture.ts";
import { temporaryFolder } from "../helpers/folder.ts";
import { until } from "../helpers/until.ts";
import type { Client } from "./client.ts";
import { ClusterMachines, isWhole, statusOf, untilOn } from "./cluster-machines.ts";
import { programDir } from "./installed.ts";
import type { Machine } from "./machine.ts";
import { Network } from "./network.ts";

const machines = await ClusterMachines.start();
const { network } = machines;
const [one, two, three] = machines.members.map(({ machine }) => machine) as [Machine, Machine, Machine];
const { path: scratch } = fixture(temporaryFolder("cluster"));
const client = (number: number): Client => machines.client(number);
const mainPid = async (machine: Machine): Promise<string> =>
  (await machine.run("systemctl", "show", "--property=MainPID", "--value", "sandgate-nats.service")).trim();

/** On one machine, from before there was a cluster. */
let kept = "";

test("a machine joins with a NATS server of its own, which waits until there are three", async () => {
  await machines.installFirst();
  kept = await client(1).create();
  await client(1).output(kept, "echo kept > /root/kept");
  await assert.rejects(one.run("sandgate-admin", "cluster", "form", "--yes"), /Let others join first/);
  for (const machine of [two, three]) {
    assert.match(await machines.join(machine, one), /waits to be a node of a cluster/);
    if (machine === two) await assert.rejects(one.run("sandgate-admin", "cluster", "form", "--yes"), /A cluster takes 3 NATS servers, and there are 2/);
  }
  for (const number of [2, 3])
    await until(`gateway ${number} serves what is elsewhere`, async () => (await client(number).output(kept, "cat /root/kept")) === "kept\n");
});

test("three servers become a cluster, which has all that one of them stored, in three copies", async () => {
  await one.run("sandgate-admin", "cluster", "form", "--yes");
  await until("all copies", () => isWhole(one), 60_000);
  const { nodes } = await statusOf(one);
  assert.deepEqual(
    nodes.map(({ host, state }) => [host, state]).sort(),
    [1, 2, 3].map((number) => [Network.address(number), "active"]),
  );
  for (const number of [1, 2, 3]) await until(`gateway ${number}`, async () => (await client(number).output(kept, "cat /root/kept")) === "kept\n", 60_000);
  await one.run("sandgate-admin", "cluster", "form", "--yes");
  assert.equal(await one.shell("ls -d /var/lib/sandgate/nats-alone 2> /dev/null || true"), "");
});

test("at every node, the credentials of a worker are good for its own alone, and those of a gateway not for the list of machines", async () => {
  const { data } = await client(1).call<{ data: { id: string }[] }>("/v1/admin/workers");
  const file = (await two.shell("ls /var/lib/sandgate/secrets/worker-*.nk")).trim();
  const id = /worker-(.+)\.nk$/.exec(file)?.[1] ?? "";
  const other = data.map((worker) => worker.id).find((one) => one !== id);
  const ca = join(scratch, "ca.crt");
  writeFileSync(ca, await one.run("cat", "/var/lib/sandgate/secrets/nats.crt"));
  const nkeys = (await two.run("cat", file)).trim().split("\n");
  const gateway = (await two.run("cat", "/var/lib/sandgate/secrets/gateway.nk")).trim();
  for (const number of [1, 2, 3]) {
    const given = join(scratch, "given.json");
    writeFileSync(given, JSON.stringify({ url: `nats://${Network.address(number)}:4223`, ca, id, nkeys, other, gateway }), { mode: 0o600 });
    const program = ["sh", "-c", '"$0" "$1" < "$2"', join(appDir, "node_modules/.bin/tsx"), join(appDir, "test/host/load/hostile.ts"), given];
    const { breaches, heard, allowed, tried } = JSON.parse(await network.run(...program)) as {
      breaches: string[];
      heard: string[];
      allowed: boolean;
      tried: number;
    };
    assert.deepEqual({ breaches, heard, allowed }, { breaches: [], heard: [], allowed: true });
    assert.ok(tried > 50);
  }
});

/** What happens to the servers; each resolves when all is as it was. */
const disasters: Readonly<Record<string, () => Promise<void>>> = {
  "one is killed": async () => {
    await two.run("kill", "-9", await mainPid(two));
  },
  "one stands still": async () => {
    const pid = await mainPid(three);
    await three.run("kill", "-STOP", pid);
    await sleep(20_000);
    await three.run("kill", "-CONT", pid);
  },
  "a machine is cut off": async () => {
    await network.cable(3, "down");
    await sleep(30_000);
    await network.cable(3, "up");
  },
  "the one that the parts of the first machine use is stopped": async () => {
    await one.run("systemctl", "stop", "sandgate-nats.service");
    await sleep(10_000);
    await one.run("systemctl", "start", "sandgate-nats.service");
  },
  "all are stopped": async () => {
    await Promise.all(machines.members.map(({ machine }) => machine.run("systemctl", "stop", "sandgate-nats.service")));
    for (const number of [1, 2, 3]) {
      const { status, head } = await machines.answer(number, `/v1/sandboxes/${kept}/status`);
      assert.equal(status, "503");
      assert.match(head, /^retry-after: \d/im);
      assert.equal((await machines.answer(number, "/readyz")).status, "503");
    }
    await Promise.all(machines.members.map(({ machine }) => machine.run("systemctl", "start", "sandgate-nats.service")));
  },
};

test("nothing that clients were told turns out to be false, and everything comes back by itself", { timeout: 1_500_000 }, async (context) => {
  context.diagnostic(`seed ${plan.seed}; again by: npm run test:host -- cluster --seed ${plan.seed}`);
  await machines.untilReady("the former tests");
  const end = await machines.load();
  await sleep(10_000);
  for (const [what, happen] of Object.entries(disasters)) {
    await happen();
    const startedMs = performance.now();
    await machines.untilWell(what);
    context.diagnostic(`${what}: whole again after ${Math.round(performance.now() - startedMs)} ms`);
    await sleep(5_000);
  }
  context.diagnostic(JSON.stringify(await end()));
  assert.equal(await client(2).output(kept, "cat /root/kept"), "kept\n");
});

test("a machine that is gone for good is replaced by another, and is not let in any more", async () => {
  const [lost] = (await statusOf(one)).nodes.filter(({ host }) => host === Network.address(3));
  assert.ok(lost);
  await assert.rejects(three.run("sandgate-admin", "members", "rm", "--yes", lost.id), /the machine itself/);
  await network.cable(3, "down");
  // The others may have to find another leader first.
  const said = await until("it is removed", () => two.run("sandgate-admin", "members", "rm", "--yes", lost.id), 120_000);
  assert.match(said, /Only 2 NATS servers are left/);
  await until("two nodes", async () => (await statusOf(one)).nodes.length === 2);
  assert.doesNotMatch(await one.run("sandgate-admin", "members"), new RegExp(lost.id));
  // With its keys, its server does not get in, and neither do its parts.
  await network.cable(3, "up");
  await sleep(15_000);
  assert.equal(await machines.isReady(3).catch(() => false), false);
  assert.equal((await statusOf(two)).nodes.length, 2);
  await three.run(`${programDir}/systemd/install`, "--remove", "--purge");
  await machines.join(three, two);
  await untilOn(two, "all copies on three nodes again", async () => (await statusOf(two)).nodes.length === 3 && (await isWhole(two)));
  await untilOn(three, "the new gateway", () => machines.isReady(3));
  assert.equal(await client(3).output(kept, "cat /root/kept"), "kept\n");
});

/** As README says before a restore, and the sandboxes as well. */
const shutDown = (machine: Machine): Promise<string> =>
  machine.shell('systemctl stop sandgate.target sandgate-setup.service; systemctl stop "user@$(id -u sandgate).service"');
const startUp = (machine: Machine): Promise<string> => machine.run("systemctl", "start", "sandgate-setup.service", "sandgate.target");
const restore = (machine: Machine): Promise<string> => machine.run("sandgate-admin", "restore", "--yes", "--replace", "/root/backup");

test("a backup on any of the machines has all that the cluster stores, and is not restored beside the others", async () => {
  await two.run("sandgate-admin", "backup", "/root/backup");
  await assert.rejects(restore(two), /Stop everything first/);
  await shutDown(two);
  await assert.rejects(restore(two), /The NATS server nats_\w+ of this cluster runs at 10\.77\./);
  await startUp(two);
  await untilOn(two, "all copies", () => isWhole(two));
});

test("without a majority there is no backup", async () => {
  for (const machine of [one, three]) await shutDown(machine);
  await assert.rejects(two.run("sandgate-admin", "backup", "/root/another"), /of several, a majority must run/);
  assert.equal(await two.shell("ls -d /root/another* 2> /dev/null || true"), "");
});

test("a cluster that is lost begins again as one server with everything, which others join", async () => {
  for (const machine of [one, three]) await machine.run(`${programDir}/systemd/install`, "--remove", "--purge");
  await shutDown(two);
  await restore(two);
  // Where there is no archive of packages, a start cannot make the image again.
  await two.shell("cd /var/lib/sandgate && rm -rf containers podman home && cd ../sandgate.replaced-* && mv containers podman home ../sandgate");
  await startUp(two);
  await untilOn(two, "the gateway", () => machines.isReady(2));
  assert.deepEqual([(await statusOf(two)).nodes, JSON.parse(await two.run("sandgate-admin", "members", "--json"))], [[], { data: [] }]);
  assert.equal((await client(2).call<{ id: string }>(`/v1/sandboxes/${kept}`)).id, kept);
  const { data } = await client(2).call<{ data: { action: string; by: string }[] }>("/v1/admin/audit?limit=1000");
  assert.ok(data.some(({ action, by }) => action === "adminFormCluster" && by === "machine"));
  for (const machine of [one, three]) await machines.join(machine, two);
  await two.run("sandgate-admin", "cluster", "form", "--yes");
  await machines.untilWell("the restore");
  assert.equal(await client(1).output(await client(3).create(), "echo made"), "made\n");
});
