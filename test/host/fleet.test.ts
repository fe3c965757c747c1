/** An installation on several machines: one runs everything, one is a further worker, one a further gateway. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { fixture } from "../helpers/fixture.ts";
import { until } from "../helpers/until.ts";
import { Client } from "./client.ts";
import { programDir } from "./installed.ts";
import { Machine, volumeDir } from "./machine.ts";
import { Network } from "./network.ts";

const network = await fixture(Network.start());
const [one, two, three] = await Promise.all(["one", "two", "three"].map((name, index) => fixture(Machine.start(name, { network, number: index + 1 }))));
assert.ok(one && two && three);

const gateway = (number: number): Client => new Client((...argv) => network.run(...argv), `http://${Network.address(number)}:8080`, one.key);
const [first, further] = [gateway(1), gateway(3)];
const volume = `SANDGATE_VOLUME=${volumeDir}`;
const everywhere = "SANDGATE_HOST=0.0.0.0";
const grace = "SANDGATE_WORKER_GRACE_MS=8000";

/** The word at the end of the line to paste. */
const token = async (...options: string[]): Promise<string> => (await one.run("sandgate-admin", "join-token", ...options)).trim().split(" ").at(-1) ?? "";
const workers = async (): Promise<{ id: string; present: boolean }[]> =>
  (await first.call<{ data: { id: string; present: boolean }[] }>("/v1/admin/workers")).data;

let workerToken = "";
/** A sandbox on the second machine. */
let there = "";

test("a machine joins only where the NATS server can be reached", async () => {
  await one.install([], [volume, everywhere]);
  await assert.rejects(one.run("sandgate-admin", "join-token"), /SANDGATE_NATS_HOST/);
  await one.shell(`(echo SANDGATE_NATS_HOST=${Network.address(1)}; echo ${grace}) >> /etc/sandgate/sandgate.env; ${programDir}/systemd/install`);
  await assert.rejects(two.run(`${programDir}/systemd/install`, "--role", "worker"), /join-token/);
  await assert.rejects(two.run(`${programDir}/systemd/install`, "--join", "sgj_e30"), /whole word/);
});

test("a further worker joins with one line, and gets sandboxes", async () => {
  // Reached by a name, which the server's certificate does not know.
  for (const machine of [two, three]) await machine.shell(`echo "${Network.address(1)} control.example" >> /etc/hosts`);
  workerToken = await token("--address", "control.example");
  assert.match(await two.install(["--join", workerToken], [volume]), /The worker wk_\w+ runs/);
  await until("both workers", async () => (await workers()).filter(({ present }) => present).length === 2);
  const id = /SANDGATE_WORKER_ID=(\S+)/.exec(await two.run("cat", "/etc/sandgate/sandgate.env"))?.[1];
  for (let count = 0; count < 8 && !there; count++) {
    await first.create();
    const { data } = await first.call<{ data: { id: string }[] }>(`/v1/admin/sandboxes?worker_id=${id}`);
    there = data[0]?.id ?? "";
  }
  assert.notEqual(there, "");
  await first.output(there, "echo kept > /root/kept");
  assert.equal(await two.shell("systemctl is-active sandgate-nats.service sandgate-gateway@1.service || true"), "inactive\ninactive");
});

test("a further gateway joins, and serves the sandboxes of all workers", async () => {
  await three.shell(`echo ${await token("--role", "gateway")} | ${programDir}/systemd/install --join -`);
  await three.shell(`echo ${everywhere} >> /etc/sandgate/sandgate.env; systemctl restart sandgate-setup.service`);
  assert.equal(await until("the gateway answers", () => further.output(there, "cat /root/kept"), 30_000), "kept\n");
  assert.match(await three.run("sandgate-admin", "workers"), /wk_/);
  assert.equal(
    await three.shell("command -v podman > /dev/null && ls /var/lib/sandgate/containers/storage 2> /dev/null || echo no containers"),
    "no containers",
  );
});

test("streams between machines go over TLS, and not over NATS", async () => {
  const ways = (machine: Machine): Promise<string> => machine.shell("curl -sS http://127.0.0.1:9464/metrics | grep '^sandgate_streams_total'");
  const count = (text: string, way: string): number => Number(new RegExp(`way="${way}"\\S* (\\d+)`).exec(text)?.[1]);
  for (const [machine, client] of [
    [one, first],
    [three, further],
  ] as const) {
    await until("the line", async () => {
      const before = count(await ways(machine), "tls");
      await client.output(there, "true");
      return count(await ways(machine), "tls") > before;
    });
    const before = await ways(machine);
    assert.equal((await client.output(there, "seq 100000")).length, 588_895);
    const after = await ways(machine);
    assert.deepEqual([count(after, "tls") > count(before, "tls"), count(after, "nats")], [true, count(before, "nats")]);
  }
});

test("a machine that is cut off is told to clients as lost, and its sandboxes go on when it is back", async (context) => {
  await first.output(there, "(while :; do echo tick >> /root/ticks; sleep 0.2; done) > /dev/null 2>&1 &");
  const stream = further.text(`/v1/sandboxes/${there}/execute_async`, { command: "while :; do echo tick; sleep 1; done" });
  await until("it runs", async () => (await first.output(there, "pgrep -fc '[s]leep 1' || true")) !== "0\n");
  await network.cable(2, "down");
  const cutAtMs = performance.now();
  assert.match((await stream).trim().split("\n").at(-1) ?? "", /"code":"worker_lost"/);
  context.diagnostic(`told after ${Math.round(performance.now() - cutAtMs)} ms`);
  const { error } = await first.call(`/v1/sandboxes/${there}/execute`, { command: "true" });
  assert.equal(error?.code, "unavailable");
  const elsewhere = await further.create();
  assert.equal(await first.output(elsewhere, "echo here"), "here\n");
  await network.cable(2, "up");
  const before = Number(await until("it is back", () => first.output(there, "wc -l < /root/ticks"), 60_000));
  await until("its programs go on", async () => Number(await first.output(there, "wc -l < /root/ticks")) > before);
});

test("the sandboxes of a machine without power become errors, and come back with it", async () => {
  await two.cutPower();
  type Shown = { status: string; error?: string };
  const shown = (): Promise<Shown> => first.call<Shown>(`/v1/sandboxes/${there}`) as Promise<Shown>;
  const lost = await until("the grace time is over", async () => (await shown()).status === "error" && shown(), 30_000);
  assert.match(lost.error ?? "", /worker is gone/);
  await two.boot();
  assert.equal(await until("the sandbox answers", () => first.output(there, "cat /root/kept"), 90_000), "kept\n");
  assert.equal((await shown()).status, "running");
});

test("a member that is taken back is disconnected, and is told why", async () => {
  const gatewayId = /^(gw_\w+) +gateway/m.exec(await one.run("sandgate-admin", "members"))?.[1] ?? "";
  await one.run("sandgate-admin", "members", "rm", "--yes", gatewayId);
  await until(
    "it is not ready",
    async () => (await network.run("curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", `http://${Network.address(3)}:8080/readyz`)) === "503",
    30_000,
  );
  assert.equal(await first.output(there, "cat /root/kept"), "kept\n");
  const { data } = await first.call<{ data: { by: string; action: string; target: string }[] }>("/v1/admin/audit");
  const done = data.filter(({ by }) => by === "machine").map(({ action, target }) => `${action} ${target.slice(0, 3)}`);
  assert.deepEqual(done, ["adminRemoveMachine gw_", "adminLetMachineIn gw_", "adminLetMachineIn wk_"]);
});

test("a machine with the token of another is refused", async () => {
  await three.run(`${programDir}/systemd/install`, "--remove", "--purge");
  await assert.rejects(three.install(["--join", workerToken], [volume]), /is used by another machine/);
  assert.equal(await first.output(there, "cat /root/kept"), "kept\n");
});
