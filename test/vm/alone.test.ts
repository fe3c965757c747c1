/**
 * `npm start` with cgroup v2 and without systemd, as in a container: the start itself makes the groups that the kernel limits
 * sandboxes by, and gives them to the worker's account.
 */
import assert from "node:assert/strict";
import { basename } from "node:path";
import { test } from "node:test";
import { run } from "../../systemd/base/run.ts";
import { programDir } from "../../systemd/units/places.ts";
import { fixture } from "../helpers/fixture.ts";
import { checksIn } from "../helpers/npm-start.ts";
import { preparedExecServer } from "../helpers/prepare.ts";
import { until } from "../helpers/until.ts";
import { Client } from "../host/client.ts";
import { podmanDir } from "../host/installed.ts";
import { expected, type Limited, LimitedSandboxes, memoryMiB, patienceMs, processesMax } from "./limited.ts";
import { smallImage, VirtualMachine } from "./machine.ts";

const machine = await fixture(VirtualMachine.start());
const client = new Client((...argv) => run(argv, { cwd: "/" }), machine.url, machine.key);
const unit = "container.service";
const said = (): Promise<string> => machine.run("journalctl", "--unit", unit, "--output", "cat");
const sandboxes = new LimitedSandboxes(machine, client, said);
/** What `npm start` becomes once everything is built, as it is in the package. */
const start = `${programDir}/node_modules/.bin/node ${programDir}/build/systemd-supervisor-main.js`;
const settings = [`SANDGATE_SANDBOX_PIDS_MAX=${processesMax}`, "SANDGATE_HOST=0.0.0.0", "SANDGATE_POOL_SIZE=0", `SANDGATE_DEFAULT_IMAGE=${smallImage}`];
const groups = "find /sys/fs/cgroup -mindepth 1 -type d";

/** What makes the group of a container, and stays outside. */
const outside = `
own=/sys/fs/cgroup$(sed -n s/^0:://p /proc/self/cgroup)
mkdir "$own/outside" "$own/container" && echo 0 > "$own/outside/cgroup.procs"
echo "+memory +cpu +pids" > "$own/cgroup.subtree_control"
exec unshare --mount --pid --fork --kill-child --mount-proc -- sh -euc "$1" sh "$own/container" "$2" "$3"`;
const entering = 'echo 0 > "$1/cgroup.procs" && exec unshare --cgroup -- sh -euc "$2" sh "$3"';
const hiding = 'for dir in systemd user; do mount -t tmpfs none /run/$dir; done; mount -t cgroup2 none /sys/fs/cgroup; exec tini-static -- sh -c "$1"';

/** Runs a script as a container runs its first process, with a tree of groups of its own, whose root it is in. */
const contained = (script: string, ...options: string[]): Promise<string> =>
  machine.run("systemd-run", "--quiet", "--collect", "--property=Delegate=yes", ...options, "--", "sh", "-euc", outside, "sh", entering, hiding, script);

let greedy: Limited;

test("a set-up that fails leaves no group", async () => {
  const into = await machine.imageImport();
  const lines = await contained(`${start} --setup-only; echo "ended with $?"; ${groups}; ${into}`, "--pipe", "--wait");
  assert.match(lines, /could not install mmdebstrap/);
  assert.match(lines, /^ended with 1\n\/sys\/fs\/cgroup\/sandgate-others$/m);
  assert.doesNotMatch(lines, /cgroup\/sandgate-\d/);
});

test("the kernel enforces every limit, by groups of the start's own", async () => {
  const server = await machine.give(preparedExecServer());
  await machine.run("install", "-m", "0755", server, `${podmanDir}/${basename(server)}`);
  const script = `for turn in 1 2; do ${start}; echo "turn $turn ended with $?: $(${groups})"; done; exec sleep infinity`;
  await contained(script, `--unit=${unit}`, ...settings.map((setting) => `--setenv=${setting}`));
  await until("it is ready", async () => (await said()).includes("Sandgate is ready."), patienceMs).catch(async (error: Error) =>
    assert.fail(`${error.message}\n${await said()}`),
  );
  const text = await said();
  const checks = checksIn(text, "✓");
  for (const limit of ["memory", "cpu", "pids", "storage"])
    assert.deepEqual(
      checks.find(([name]) => name === `${limit}_limit`),
      [`${limit}_limit`, "enforced by the kernel"],
      text,
    );
  greedy = await sandboxes.make();
  assert.match(greedy.group, new RegExp(`^/sys/fs/cgroup/system.slice/${unit}/container/sandgate-${await machine.run("id", "-u", "sandgate")}/wk_\\w+/`));
  assert.deepEqual(await sandboxes.asked(greedy), expected(memoryMiB, 1));
});

test("a command that takes more memory than its sandbox has is killed by the kernel, and the answer says so", async () => {
  const { exit_code, error } = await sandboxes.execute(greedy.id, `dd if=/dev/zero of=/dev/null bs=${2 * memoryMiB}M count=1`, 240);
  assert.deepEqual([exit_code, error], [137, "out of memory: the sandbox reached its memory limit, and the kernel ended a process"]);
  assert.equal(await sandboxes.counted(greedy.group, "memory.events", "oom_kill"), 1);
  await sandboxes.expectUsable(greedy.id);
});

test("a fork bomb stops at the number of processes that a sandbox may have", async () => {
  const bombed = await sandboxes.execute(greedy.id, ":(){ :|:& };:; sleep 600", 20);
  assert.ok([2, 124].includes(bombed.exit_code), JSON.stringify(bombed));
  assert.ok((await sandboxes.counted(greedy.group, "pids.events", "max")) > 0);
  assert.ok(Number((await sandboxes.read(greedy.group, "pids.peak"))[0]) <= processesMax);
  await until("the bomb is gone", async () => Number((await sandboxes.read(greedy.group, "pids.current"))[0]) < 8, patienceMs);
  await sandboxes.expectUsable(greedy.id);
});

test("busy loops get the part of the CPU that was asked for", async () => {
  await sandboxes.execute(greedy.id, "while :; do :; done & while :; do :; done", 15);
  assert.ok((await sandboxes.counted(greedy.group, "cpu.stat", "nr_throttled")) > 0, "two loops and one CPU");
});

test("a stop takes the groups away, and the next start in the same place makes them again", async () => {
  await client.upload(greedy.id, "/root/kept", "as it was");
  const stop = (): Promise<string> => machine.run("pkill", "--signal", "TERM", "--exact", "--full", start);
  await stop();
  // What is left is where the container's own processes had to go.
  const ended = (turn: number): Promise<true> => {
    const line = new RegExp(`^turn ${turn} ended with 0: /sys/fs/cgroup/sandgate-others$`, "m");
    return until(`turn ${turn} has ended`, async () => line.test(await said()) || undefined, patienceMs);
  };
  await ended(1);
  await until("it is ready again", async () => (await said()).split("Sandgate is ready.").length === 3, patienceMs);
  assert.equal(await client.output(greedy.id, "cat /root/kept"), "as it was");
  assert.deepEqual(await sandboxes.asked({ id: greedy.id, group: await sandboxes.groupOf(greedy.id) }), expected(memoryMiB, 1));
  await stop();
  await ended(2);
  await machine.run("systemctl", "kill", "--signal=KILL", unit);
});
