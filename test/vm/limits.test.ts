/**
 * What only a machine with a kernel of its own shows: limits that it enforces in the groups of cgroup v2 that systemd delegates, and a
 * clock that is set for all parts.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { run } from "../../systemd/base/run.ts";
import { fixture } from "../helpers/fixture.ts";
import { until } from "../helpers/until.ts";
import { Client } from "../host/client.ts";
import { strongRuntimeAside } from "./disk.ts";
import { expected, type Limited, LimitedSandboxes, memoryMiB, patienceMs, processesMax } from "./limited.ts";
import { VirtualMachine } from "./machine.ts";

const machine = await fixture(VirtualMachine.start());
const client = new Client((...argv) => run(argv, { cwd: "/" }), machine.url, machine.key);
const mib = 1024 ** 2;
const limits = ["memory", "cpu", "pids", "storage"];
const settings = [`SANDGATE_SANDBOX_PIDS_MAX=${processesMax}`, "SANDGATE_HOST=0.0.0.0", "SANDGATE_POOL_SIZE=0"];

const sandboxes = new LimitedSandboxes(machine, client, () => machine.shell("journalctl -t sandgate-worker -o cat -n 8"));
const property = (unit: string, name: string): Promise<string> => machine.run("systemctl", "show", `--property=${name}`, "--value", unit);

let greedy: Limited;
let neighbour: Limited;

test("it is installed from its package, and the kernel enforces every limit", async (context) => {
  const beganMs = performance.now();
  await machine.install([], settings, "/usr/sbin/sandgate-install");
  context.diagnostic(`installed in ${Math.round((performance.now() - beganMs) / 1000)} s`);
  await until("it is ready", async () => (await client.text("/readyz")).includes('"ready"'), patienceMs);
  const ready = await machine.shell('journalctl -t sandgate-worker -o cat | grep \'"event":"ready"\' | tail -n 1');
  const { checks } = (JSON.parse(ready) as { host: { checks: { name: string; value: string; ok: boolean }[] } }).host;
  for (const limit of limits)
    assert.deepEqual(
      checks.find(({ name }) => name === `${limit}_limit`),
      { name: `${limit}_limit`, value: "enforced by the kernel", ok: true },
    );
  const workers = await client.call<{ data: { not_enforced: string[] }[] }>("/v1/admin/workers");
  assert.deepEqual(
    workers.data.map(({ not_enforced }) => not_enforced),
    [[]],
  );
  assert.match(await machine.run("sandgate-admin", "workers"), /^wk_\w+ +up .* -$/m);
});

test("a sandbox has a group below its account's service manager, with the limits that were asked for", async () => {
  greedy = await sandboxes.make();
  neighbour = await sandboxes.make({ memory: 256, cpus: 2 });
  assert.deepEqual(await sandboxes.asked(greedy), expected(memoryMiB, 1));
  assert.deepEqual(await sandboxes.asked(neighbour), expected(256, 2));
  assert.equal(
    await machine.run("find", "/sys/fs/cgroup/user.slice", "-name", "sandgate-*"),
    "",
    "groups of the worker's own, which it tries to make and cannot",
  );
  assert.match(greedy.group, new RegExp(`/user@${await machine.run("id", "-u", "sandgate")}\\.service/`));
});

test("a command that takes more memory than its sandbox has is killed by the kernel, and nothing else", async () => {
  const worker = await property("sandgate-worker.service", "MainPID");
  await client.output(greedy.id, "(while :; do sleep 1; done) > /dev/null 2>&1 &");
  const { exit_code, error } = await sandboxes.execute(greedy.id, `dd if=/dev/zero of=/dev/null bs=${2 * memoryMiB}M count=1`, 240);
  assert.deepEqual([exit_code, error], [137, "out of memory: the sandbox reached its memory limit, and the kernel ended a process"]);
  assert.equal(await sandboxes.counted(greedy.group, "memory.events", "oom_kill"), 1);
  assert.equal(await sandboxes.counted(neighbour.group, "memory.events", "oom_kill"), 0);
  assert.match(await machine.shell("dmesg | grep 'Memory cgroup out of memory'"), /\(dd\)/);
  await sandboxes.expectUsable(greedy.id);
  await sandboxes.expectUsable(neighbour.id);
  assert.equal(await property("sandgate-worker.service", "MainPID"), worker);
});

test("status counts files in memory, and leaves the cache of files on disk out", async () => {
  const [inMemory, cached] = [40, 60];
  await client.output(
    neighbour.id,
    `dd if=/dev/zero of=/dev/shm/kept bs=1M count=${inMemory}; dd if=/dev/zero of=/root/file bs=1M count=${cached}; sync; cat /root/file > /dev/null`,
  );
  assert.ok((await sandboxes.counted(neighbour.group, "memory.stat", "shmem")) >= inMemory * mib);
  assert.ok((await sandboxes.counted(neighbour.group, "memory.stat", "file")) >= (inMemory + cached) * mib);
  const { current } = await client.call<{ current: { memory_mb: number } }>(`/v1/sandboxes/${neighbour.id}/status`);
  assert.ok(current.memory_mb >= inMemory && current.memory_mb < inMemory + cached / 2, String(current.memory_mb));
  await client.output(neighbour.id, "rm /dev/shm/kept");
});

test("files in memory count towards the limit", async () => {
  const { exit_code } = await sandboxes.execute(
    greedy.id,
    `dd if=/dev/zero of=/dev/shm/kept bs=1M count=60; dd if=/dev/zero of=/dev/null bs=${memoryMiB - 50}M count=1`,
    240,
  );
  assert.equal(exit_code, 137);
  await client.output(greedy.id, "rm -f /dev/shm/kept; dd if=/dev/zero of=/dev/null bs=40M count=1");
});

test("a fork bomb stops at the number of processes that a sandbox may have", async () => {
  const [bombed] = await Promise.all([sandboxes.execute(greedy.id, ":(){ :|:& };:; sleep 600", 20), sandboxes.expectUsable(neighbour.id)]);
  assert.ok([2, 124].includes(bombed.exit_code), JSON.stringify(bombed));
  assert.ok((await sandboxes.counted(greedy.group, "pids.events", "max")) > 0);
  assert.equal(await sandboxes.counted(neighbour.group, "pids.events", "max"), 0);
  assert.ok(Number((await sandboxes.read(greedy.group, "pids.peak"))[0]) <= processesMax);
  await until("the bomb is gone", async () => Number((await sandboxes.read(greedy.group, "pids.current"))[0]) < 8, patienceMs);
  await sandboxes.expectUsable(greedy.id);
});

test("busy loops get the part of the CPU that was asked for, and no more", async () => {
  const numbers = ["nr_periods", "nr_throttled", "usage_usec"].map((name) => () => sandboxes.counted(greedy.group, "cpu.stat", name));
  const before = await Promise.all(numbers.map((ask) => ask()));
  await sandboxes.execute(greedy.id, "while :; do :; done & while :; do :; done", 15);
  const [periods = 0, throttled = 0, usage = 0] = (await Promise.all(numbers.map((ask) => ask()))).map((after, index) => after - (before[index] ?? 0));
  assert.ok(throttled > 0, "two loops and one CPU");
  // What it had left of the first period, and of the last.
  assert.ok(usage <= (periods + 2) * 100_000, `${usage} µs in ${periods} periods`);
});

test("a sandbox sees only its own group, and cannot change it", async () => {
  assert.equal(await client.output(greedy.id, "cat /proc/self/cgroup"), "0::/\n");
  assert.equal(await client.output(greedy.id, "cat /sys/fs/cgroup/memory.max"), `${memoryMiB * mib}\n`);
  assert.equal(await client.output(greedy.id, "find /sys/fs/cgroup -name '*libpod*' -o -name '*.slice'"), "");
  const attempts = [
    ...["memory.max", "memory.high", "cpu.max", "pids.max"].map((file) => `echo max > /sys/fs/cgroup/${file}`),
    "mkdir /sys/fs/cgroup/own",
    "echo $$ > /sys/fs/cgroup/cgroup.procs",
    "mount -t cgroup2 cgroup2 /mnt",
    "mount -o remount,rw /sys/fs/cgroup",
  ];
  for (const attempt of attempts) assert.notEqual((await sandboxes.execute(greedy.id, `mkdir -p /mnt; ${attempt}`)).exit_code, 0, attempt);
  assert.deepEqual(await sandboxes.asked(greedy), expected(memoryMiB, 1));
});

test("a copy with memory has the limits that were asked for, and the kernel enforces them", async () => {
  const copied = 320;
  await client.output(neighbour.id, "(while :; do echo counted >> /root/counted; sleep 0.5; done) > /dev/null 2>&1 &");
  const taken = await client.call<{ id: string }>(`/v1/sandboxes/${neighbour.id}/snapshot`, { memory: "require" });
  assert.equal(taken.error, undefined, JSON.stringify(taken.error));
  const body = { memory: "require", wait_for_ready: false, resources: { memory: copied, cpus: 2 } };
  const { id, error } = await client.call<{ id: string }>(`/v1/snapshots/${taken.id}/restore`, body);
  assert.equal(error, undefined, JSON.stringify(error));
  const shown = (): Promise<{ status: string; memory_restored: boolean }> => client.call(`/v1/sandboxes/${id}`);
  const now = await until("it is made", () => shown().then((each) => each.status !== "creating" && each), patienceMs);
  assert.deepEqual([now.status, now.memory_restored], ["running", true]);
  const copy: Limited = { id, group: await sandboxes.groupOf(id) };
  assert.deepEqual(await sandboxes.asked(copy), expected(copied, 2));
  assert.notEqual(copy.group, neighbour.group);
  const lines = async (): Promise<number> => Number(await client.output(id, "wc -l < /root/counted"));
  const before = await lines();
  await until("its program goes on", async () => (await lines()) > before, patienceMs);
  const { exit_code } = await sandboxes.execute(id, `dd if=/dev/zero of=/dev/null bs=${2 * copied}M count=1`, 240);
  assert.equal(exit_code, 137);
  const bombed = await sandboxes.execute(id, ":(){ :|:& };:; sleep 600", 20);
  assert.ok([2, 124].includes(bombed.exit_code), JSON.stringify(bombed));
  assert.ok(Number((await sandboxes.read(copy.group, "pids.peak"))[0]) <= processesMax);
  await machine.run("curl", "-sS", "-X", "DELETE", "-H", `x-api-key: ${await machine.key()}`, `http://127.0.0.1:8080/v1/sandboxes/${id}/delete`);
  await client.output(neighbour.id, "pkill -f counted; true");
});

const ticks = async (): Promise<number> => Number(await client.output(greedy.id, "wc -l < /root/ticks"));

/** Waits until the sandbox answers, and its programs have gone on with its limits in place. */
async function goesOn(before: number): Promise<void> {
  const seen = await until("the sandbox answers", ticks, patienceMs);
  assert.ok(seen >= before, `${seen} after ${before}`);
  await until("its programs go on", async () => (await ticks()) > seen, patienceMs);
  assert.deepEqual(await sandboxes.asked(greedy), expected(memoryMiB, 1));
}

const damages = {
  "systemctl restart": "systemctl restart sandgate-worker.service",
  "kill -9": 'kill -9 "$(systemctl show --property=MainPID --value sandgate-worker.service)"',
  "systemctl stop of all services": "systemctl stop sandgate.target && systemctl start sandgate.target",
};
for (const [what, damage] of Object.entries(damages)) {
  test(`${what}: the sandbox, its programs and its limits stay`, async () => {
    const tick = "[ -e /root/ticks ] || (while :; do echo tick >> /root/ticks; sleep 0.5; done) > /dev/null 2>&1 &";
    // The worker may not be back from what was done to it before.
    await until("the sandbox answers", () => client.output(greedy.id, `${tick} echo on`), patienceMs);
    const before = await until("it ticks", async () => (await ticks()) || undefined);
    await machine.shell(damage);
    await goesOn(before);
  });
}

test("memory is limited after that as before", async () => {
  const kills = await sandboxes.counted(greedy.group, "memory.events", "oom_kill");
  const { exit_code, error } = await sandboxes.execute(greedy.id, `dd if=/dev/zero of=/dev/null bs=${2 * memoryMiB}M count=1`, 240);
  assert.deepEqual([exit_code, error?.startsWith("out of memory")], [137, true]);
  assert.equal(await sandboxes.counted(greedy.group, "memory.events", "oom_kill"), kills + 1);
});

// That of NATS as well, which ages what it stores by its own.
test("the machine's clock is set an hour ahead, an hour behind and right again: what is there goes on and is known, and more can be made", async () => {
  for (const change of ["+1 hour", "-2 hours", "+1 hour"]) {
    const before = await ticks();
    await machine.run("date", "--set", change);
    await goesOn(before);
    const another = await sandboxes.create();
    const { data } = await client.call<{ data: { id: string }[] }>("/v1/sandboxes/list?page_size=100");
    for (const id of [greedy.id, neighbour.id, another])
      assert.ok(
        data.some((sandbox) => sandbox.id === id),
        `${id} after ${change}`,
      );
    await sandboxes.expectUsable(another);
    await client.delete(`/v1/sandboxes/${another}/delete`);
  }
});

/** The group of a strong sandbox, which the service manager makes from its processes. */
async function strongGroup(id: string): Promise<string> {
  const groups = (await machine.run("find", "/sys/fs/cgroup/user.slice", "-name", `sandgate-${id}-*.scope`)).split("\n");
  assert.equal(groups.length, 1, groups.join(" "));
  return groups[0] ?? "";
}

test("without gVisor, a strong sandbox is refused", async () => {
  const { error } = await client.call<object>("/v1/sandboxes/create", { image: "default", isolation: "strong" });
  assert.deepEqual([error?.code, error?.message.startsWith('this needs isolation "strong"')], ["unprocessable", true], JSON.stringify(error));
});

/** gVisor is tried when the worker starts, and may not run a program in time here. */
async function offerStrong(): Promise<void> {
  await machine.run("mv", strongRuntimeAside, "/usr/bin/runsc");
  const isOffered = (): Promise<boolean> => until("the gateway knows", async () => (await client.text("/readyz")).includes('"strong":true')).catch(() => false);
  for (let tries = 0; tries < 3; tries++) {
    await machine.run("systemctl", "restart", "sandgate-worker.service");
    if (await isOffered()) return;
  }
  assert.fail(await machine.shell("journalctl -t sandgate-worker -o cat | grep -o '\"strong_isolation\"[^}]*'"));
}

test("a strong sandbox has ids of its own and the limits that were asked for, and goes on when its worker is killed", async () => {
  await offerStrong();
  const memory = 256;
  const id = await sandboxes.create({ isolation: "strong", resources: { memory } });
  assert.match(await client.output(id, "dmesg"), /Starting gVisor/);
  const group = await strongGroup(id);
  // Its processes are nobody's, and yet in the group: its account's service manager has moved those of other users.
  const users = await machine.shell(`ps -o uid=,args= -p "$(paste -sd , ${group}/cgroup.procs)" | sed -n 's/^ *\\([0-9]*\\) runsc-.*/\\1/p' | sort -u`);
  assert.ok(Number(users) > 65_536, users);
  // gVisor takes more processes than its sandbox knows of.
  assert.deepEqual(await sandboxes.asked({ id, group }), expected(memory, 1, 3 * processesMax));
  assert.equal(
    await machine.shell(
      `for pid in $(pgrep -x 'exe|runsc-sandbox|runsc-gofer'); do grep -vF "${group.slice("/sys/fs/cgroup".length)}" /proc/$pid/cgroup || true; done`,
    ),
    "",
  );
  await machine.shell('kill -9 "$(systemctl show --property=MainPID --value sandgate-worker.service)"');
  assert.equal(await until("the sandbox answers", () => client.output(id, "echo usable"), patienceMs), "usable\n");
  assert.deepEqual([await strongGroup(id), await sandboxes.asked({ id, group })], [group, expected(memory, 1, 3 * processesMax)]);
  const { exit_code } = await sandboxes.execute(id, `dd if=/dev/zero of=/dev/null bs=${2 * memory}M count=1`, 240);
  assert.equal(exit_code, 137);
  assert.equal(await until("it is started again", () => client.output(id, "echo usable"), patienceMs), "usable\n");
  assert.deepEqual(await sandboxes.asked({ id, group: await strongGroup(id) }), expected(memory, 1, 3 * processesMax));
});

test("a sandbox that is deleted leaves no group, and a removal none of the account's", async () => {
  await machine.run("curl", "-sS", "-X", "DELETE", "-H", `x-api-key: ${await machine.key()}`, `http://127.0.0.1:8080/v1/sandboxes/${greedy.id}/delete`);
  await until("its group is gone", async () => (await machine.shell(`[ -e "${greedy.group}" ] || echo gone`)) === "gone", patienceMs);
  await machine.run("dpkg", "--purge", "sandgate");
  assert.equal(await machine.shell("find /sys/fs/cgroup -name '*sandgate*' -o -name '*libpod*' -o -name 'user@[1-9]*'"), "");
  assert.equal(await machine.shell("getent passwd | grep sandgate || true"), "");
});
