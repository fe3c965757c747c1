/** Strong sandboxes on Debian 13, with Podman 5 and its own version of everything: refused where they cannot be held, and used where they can. */
import assert from "node:assert/strict";
import { basename } from "node:path";
import { test } from "node:test";
import { findProgram } from "../../systemd/setup/programs.ts";
import { strongRuntime } from "../../worker/runtime/host/strong.ts";
import { fixture } from "../helpers/fixture.ts";
import { until } from "../helpers/until.ts";
import { Client } from "./client.ts";
import { programDir } from "./installed.ts";
import { Machine, volumeDir } from "./machine.ts";

const machine = await fixture(Machine.start("strong", undefined, "trixie", "lent"));
const client = new Client((...argv) => machine.run(...argv), "http://127.0.0.1:8080", machine.key);
const service = "sandgate-worker.service";
const memoryMiB = 256;

interface Created {
  readonly id: string;
  readonly isolation: string;
}
const create = () => client.call<Created>("/v1/sandboxes/create", { image: "default", isolation: "strong", resources: { memory: memoryMiB, storage: 1 } });
const complaints = (): Promise<string> => machine.shell("journalctl -t sandgate-worker -o cat -n 12 --no-pager");
/** What the worker has said at its last start of whether it can run them. */
const said = async (): Promise<string> => (await machine.shell(`journalctl -t sandgate-worker -o cat | grep '"event":"ready"' | tail -n 1`)).trim();

/** Starts the worker again, and waits until the gateway knows what it can do now. */
async function restartWorker(isStrong: boolean): Promise<void> {
  await machine.run("systemctl", "restart", service);
  await until(`strong is ${isStrong}`, async () => (await client.text("/readyz")).includes(`"strong":${isStrong}`), 60_000).catch(async (error: Error) => {
    throw new Error(`${error.message}\n${await said()}`);
  });
}

async function assertRefused(reason: RegExp): Promise<void> {
  const { error } = await create();
  assert.deepEqual([error?.code, error?.message.startsWith('this needs isolation "strong"')], ["unprocessable", true], JSON.stringify(error));
  assert.match(await said(), reason);
}

let id = "";
/** The folder of its group among those that limit memory. */
const groupOf = async (sandbox: string): Promise<string> => (await machine.run("find", "/run/controllers/memory", "-name", sandbox)).trim();

test("it is Podman 5, and without gVisor a strong sandbox is refused", async () => {
  await machine.install([], [`SANDGATE_VOLUME=${volumeDir}`, "SANDGATE_POOL_SIZE=0"]);
  assert.match(await machine.run("podman", "--version"), / 5\./);
  await assertRefused(/runsc \(gVisor\) is not installed/);
});

test("without control groups it is refused as well, and the start says why", async () => {
  const program = await machine.give(findProgram(strongRuntime) ?? assert.fail("gVisor is missing"));
  await machine.shell(`install -m 0755 ${program} /usr/bin/${basename(program)}; rm ${program}`);
  await machine.shell(
    "echo SANDGATE_CONTROL_GROUPS=none >> /etc/sandgate/sandgate.env; systemctl restart sandgate-setup.service; systemctl start sandgate.target",
  );
  await until("the worker runs", () => create().then(({ error }) => error?.code === "unprocessable"), 60_000);
  await assertRefused(/no control groups limit memory, CPU and processes here/);
  await machine.shell(
    "sed -i /SANDGATE_CONTROL_GROUPS/d /etc/sandgate/sandgate.env; systemctl restart sandgate-setup.service; systemctl start sandgate.target",
  );
});

test("a strong sandbox runs commands under gVisor's kernel, within its limits", async () => {
  await restartWorker(true);
  const made = await create();
  assert.equal(made.error, undefined, made.error && `${JSON.stringify(made.error)}\n${await complaints()}`);
  assert.equal(made.isolation, "strong");
  ({ id } = made);
  assert.match(await client.output(id, "dmesg"), /Starting gVisor/);
  assert.equal(await client.output(id, "cd /srv && echo written > file && cat file && id -u"), "written\n0\n");
  const users = (await machine.shell("ps -e -o uid,args | sed -n 's/^ *\\([0-9]*\\) runsc-.*/\\1/p' | sort -u")).split("\n");
  assert.equal(users.length, 1, users.join());
  assert.ok(Number(users[0]) > 65_536, "gVisor is nobody's on the host");
  const limit = await machine.run("cat", `${await groupOf(id)}/memory.limit_in_bytes`);
  assert.equal(limit.trim(), String(memoryMiB * 1024 ** 2));
});

test("files go in and out", async () => {
  const key = (await machine.key()).trim();
  const curl = `curl -sS --fail -H "x-api-key: ${key}" -H "content-type: application/octet-stream"`;
  const url = `http://127.0.0.1:8080/v1/sandboxes/${id}`;
  await machine.shell(`head -c 3000000 /dev/urandom > /root/sent; ${curl} --data-binary @/root/sent "${url}/upload?path=/srv/sent"`);
  assert.equal(await client.output(id, "stat -c %s /srv/sent"), "3000000\n");
  await machine.shell(`${curl} "${url}/download?path=/srv/sent" > /root/got; cmp /root/sent /root/got`);
});

test("a restore of its snapshot has its files and is strong as well", async () => {
  const snapshot = await client.call<{ id: string }>(`/v1/sandboxes/${id}/snapshot`, {});
  assert.equal(snapshot.error, undefined, JSON.stringify(snapshot.error));
  const copy = await client.call<Created>(`/v1/snapshots/${snapshot.id}/restore`, {});
  assert.equal(copy.error, undefined, copy.error && `${JSON.stringify(copy.error)}\n${await complaints()}`);
  assert.match(await client.output(copy.id, "cat /srv/file; dmesg"), /^written\n.*Starting gVisor/s);
  await client.delete(`/v1/sandboxes/${copy.id}/delete`);
  await client.delete(`/v1/snapshots/${snapshot.id}`);
});

/** The worker, what watches and connects containers, and what holds the namespace: the sandbox's processes have one of their own, and stay. */
const endNamespace = `
  space=$(readlink "/proc/$(cat /run/user/*/sg-*/libpod/tmp/pause.pid)/ns/user")
  for process in /proc/[0-9]*; do [ "$(readlink $process/ns/user)" != "$space" ] || kill -9 "\${process#/proc/}" 2> /dev/null || true; done`;

for (const [what, damage] of Object.entries({
  "a worker that was killed": `kill -9 "$(systemctl show --property=MainPID --value ${service})"`,
  "a stop of all services": "systemctl stop sandgate.target; systemctl start sandgate.target",
  "the end of all that is in Podman's user namespace, without which nobody may look into the sandbox": endNamespace,
  "the end of its kernel": "pkill -9 -x runsc-sandbox || pkill -9 -f '^runsc-sandbox'",
})) {
  test(`after ${what}, it answers with its files`, async () => {
    await machine.shell(damage);
    assert.equal(await until("the sandbox answers", () => client.output(id, "cat /srv/file"), 90_000), "written\n");
    assert.match(await client.output(id, "dmesg"), /Starting gVisor/);
  });
}

test("nothing is left of one that is deleted", async () => {
  await client.delete(`/v1/sandboxes/${id}/delete`);
  await until("its processes are gone", async () => (await machine.shell("pgrep -f '^runsc' || true")) === "", 30_000);
  assert.equal(await machine.shell("ls /run/user/*/sg-*/runsc 2> /dev/null || true"), "");
  await client.create();
  assert.equal(await groupOf(id), "");
  await machine.run(`${programDir}/systemd/install`, "--remove", "--purge");
  assert.equal(await machine.shell("find /run/controllers /sys/fs/cgroup -name '*sandgate*' -o -name 'user@[1-9]*'"), "");
});
