/** Debian 12, whose systemd, Podman and crun are two years older than those of the other machines: installed, used, restarted, removed. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { fixture } from "../helpers/fixture.ts";
import { until } from "../helpers/until.ts";
import { Client } from "./client.ts";
import { programDir } from "./installed.ts";
import { Machine, volumeDir } from "./machine.ts";

const machine = await fixture(Machine.start("debian12", undefined, "bookworm"));
const client = new Client(
  (...argv) => machine.run(...argv),
  "http://127.0.0.1:8080",
  () => machine.run("cat", "/var/lib/sandgate/api-key"),
);
const said = (): Promise<string> => machine.run("journalctl", "-t", "sandgate-worker", "-o", "cat", "-n", "5");
const ticks = async (id: string): Promise<number> => Number(await client.output(id, "wc -l < /root/ticks"));

let id = "";

test("it installs, and a sandbox has ids and storage of its own", async () => {
  assert.match(await machine.shell("cat /etc/debian_version"), /^12\./);
  assert.match(await machine.install([], [`SANDGATE_VOLUME=${volumeDir}`]), /Sandgate runs on http:\/\/127\.0\.0\.1:8080/);
  id = await client.create(said);
  assert.match(await client.output(id, "cat /proc/self/uid_map"), /^\s+0\s+\d+\s+65536\n$/);
  const { exit_code } = await client.call<{ exit_code: number }>(`/v1/sandboxes/${id}/execute`, { command: "head -c 1200M /dev/zero > /root/large" });
  assert.notEqual(exit_code, 0);
  await client.output(id, "rm -f /root/large; (while :; do echo tick >> /root/ticks; sleep 0.2; done) > /dev/null 2>&1 &");
  assert.equal(await machine.shell("systemctl list-units --state=failed --no-legend 'sandgate*'"), "");
});

test("a snapshot of it becomes another sandbox", async () => {
  const { sandbox, error } = await client.call<{ sandbox: { id: string } }>(`/v1/sandboxes/${id}/clone`, {});
  assert.equal(error, undefined);
  assert.ok((await ticks(sandbox.id)) > 0);
});

test("sandboxes and their programs outlive a restart and a kill -9 of the worker", async () => {
  for (const command of ["restart", "kill --signal=KILL"]) {
    const before = await ticks(id);
    await machine.shell(`systemctl ${command} sandgate-worker.service`);
    const seen = await until("the sandbox answers", () => ticks(id), 90_000);
    assert.ok(seen >= before);
    await until("its programs go on", async () => (await ticks(id)) > seen);
  }
});

test("after a power cut, the sandbox is back with its files", async () => {
  const before = await ticks(id);
  await machine.cutPower();
  await machine.boot();
  assert.ok((await until("the sandbox answers", () => ticks(id), 120_000)) >= before - 1);
});

test("a purge leaves nothing", async () => {
  await machine.run(`${programDir}/systemd/install`, "--remove", "--purge");
  const left = "ls -d /var/lib/sandgate /etc/sandgate /usr/lib/sandgate /run/sandgate /etc/systemd/system/sandgate* 2> /dev/null || true";
  assert.equal(await machine.shell(`${left}; getent passwd | grep sandgate || true`), "");
});
