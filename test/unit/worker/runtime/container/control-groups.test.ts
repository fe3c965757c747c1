/** A sandbox's control groups in this machine's real hierarchies: limits, counts, the freezer, and their end. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { distinctFolders, groupFoldersOf } from "../../../../../shared/util/control-groups.ts";
import type { Account } from "../../../../../systemd/base/instance.ts";
import { Terminal } from "../../../../../systemd/base/terminal.ts";
import { createAdministrator } from "../../../../../systemd/setup/administrator.ts";
import { offerControlGroups, removeControlGroups } from "../../../../../systemd/setup/control-groups.ts";
import type { Container } from "../../../../../worker/runtime/container/container.ts";
import { ControlGroups } from "../../../../../worker/runtime/container/control-groups.ts";
import type { SandboxGroup } from "../../../../../worker/runtime/container/groups.ts";
import { pidNamespaceOf } from "../../../../../worker/runtime/process/proc.ts";
import { startProgram } from "../../../../../worker/runtime/process/program.ts";
import { Spaces } from "../../../../../worker/usage/spaces.ts";
import { atEnd } from "../../../../helpers/fixture.ts";
import { until } from "../../../../helpers/until.ts";

// This process takes the place of a worker whose account is root.
const root: Account = { name: "root", uid: 0, gid: 0, home: "/root" };
const base = groupFoldersOf(0);
const options = { skip: process.getuid?.() !== 0 || base?.version !== "v1" ? "needs root and cgroup v1" : false };
const workerId = `test-groups-${process.pid}`;
const limits = { cpus: 0.5, memoryMiB: 32, processes: 20 };
const children: ChildProcess[] = [];

const administrator = createAdministrator(new Terminal(process.stderr), new AbortController().signal);
if (!options.skip) await offerControlGroups(root, administrator);
const groups = options.skip ? undefined : (ControlGroups.open(workerId) ?? assert.fail("no groups"));
atEnd(async () => {
  for (const child of children) child.kill("SIGKILL");
  await until("the groups are gone", async () => {
    await groups?.close();
    return foldersOf().every((folder) => !existsSync(folder));
  });
  await removeControlGroups(root, administrator);
});

function foldersOf(...names: string[]): string[] {
  return distinctFolders(base?.folders ?? {}).map((folder) => join(folder, workerId, ...names));
}

async function first(): Promise<{ child: ChildProcess; initPid: number; pids: number[]; pidNamespace: string; networkPids: number[] }> {
  const child = spawn("sleep", ["1000"], { stdio: "ignore" });
  children.push(child);
  await once(child, "spawn");
  const initPid = child.pid as number;
  return { child, pids: [initPid], initPid, pidNamespace: pidNamespaceOf(initPid) ?? "", networkPids: [] };
}

async function runIn(group: SandboxGroup, script: string): Promise<number> {
  return startProgram(["/bin/sh", "-c", script], { sandbox: { group } }).exited;
}

test("the kernel ends what takes more memory, refuses more processes, and counts", options, async () => {
  assert.deepEqual(groups?.limited, { memory: true, cpu: true, pids: true });
  const group = await groups.join("one", await first(), limits);
  assert.equal(group.oomKills(), 0);
  assert.equal(await runIn(group, "head -c 100000000 /dev/zero | tail > /dev/null; exit $?"), 137);
  assert.equal(group.oomKills(), 1);
  assert.equal(await runIn(group, "for i in $(seq 30); do sleep 5 & done 2> /dev/null"), 2);
  await runIn(group, "pkill -f 'sleep 5'; true");
  assert.equal(await runIn(group, "i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done"), 0);
  assert.ok((group.usage().cpuSeconds ?? 0) > 0);
});

test("memory counts without the cache of files on disk, and with files in memory", options, async () => {
  const group = (await groups?.join("two", await first(), limits)) ?? assert.fail();
  const file = `/dev/shm/${workerId}`;
  assert.equal(await runIn(group, `head -c 8M /dev/zero > ${file}; cat /usr/bin/perl /usr/bin/podman > /dev/null`), 0);
  const { memoryBytes = 0, sharedBytes } = group.usage();
  assert.equal(sharedBytes, 8 * 1024 ** 2);
  assert.ok(memoryBytes >= sharedBytes && memoryBytes < 16 * 1024 ** 2, String(memoryBytes));
  assert.equal(await runIn(group, `rm ${file}`), 0);
  await group.reclaim();
  assert.ok((group.usage().memoryBytes ?? 0) < 4 * 1024 ** 2);
});

test("the processes of a group are what lives in the sandbox, and not its network", options, async () => {
  const [container, network] = [await first(), await first()];
  const group = (await groups?.join("six", { ...container, networkPids: [network.initPid] }, limits)) ?? assert.fail();
  assert.deepEqual(group.processes(), [container.initPid]);
  const program = startProgram(["/bin/sleep", "1000"], { sandbox: { group } });
  const pid = (await program.pid) ?? assert.fail();
  await until("it runs in the group", () => group.processes()?.includes(pid) === true);
  assert.deepEqual(new Set(group.processes()), new Set([container.initPid, pid]));
  program.kill();
  await program.exited;
  assert.deepEqual(group.processes(), [container.initPid]);
  assert.deepEqual(new Spaces().membersOf(containerWith(group, container)), [container.initPid]);
  assert.deepEqual(new Spaces().membersOf(containerWith(undefined, { ...container, pidNamespace: "none" })), []);
});

/** What is asked of a container to find its processes. */
const containerWith = (group: SandboxGroup | undefined, { initPid, pidNamespace }: Pick<Container, "initPid" | "pidNamespace">): Container =>
  ({ isolation: "standard", initPid, doorPid: initPid, pidNamespace, group }) as Container;

test("a frozen group stands still, and a worker that is started anew thaws it", options, async () => {
  const container = await first();
  const group = (await groups?.join("three", container, limits)) ?? assert.fail();
  const counting = startProgram(["/bin/sh", "-c", "while :; do :; done"], { sandbox: { group } });
  const cpu = (): number => group.usage().cpuSeconds ?? 0;
  await until("it runs", () => cpu() > 0.01);
  group.freezer?.freeze();
  await until("it stands", () => group.freezer?.isFrozen() === true);
  const before = cpu();
  await new Promise((resolve) => setTimeout(resolve, 100));
  assert.equal(cpu(), before);
  assert.ok(ControlGroups.open(workerId));
  await until("it runs again", () => cpu() > before);
  counting.kill();
  await assert.doesNotReject(counting.exited);
});

test("a group goes with its first process, not before, even if nothing else was in it", options, async () => {
  const container = await first();
  await groups?.join("four", container, limits);
  // As if it had never been moved there.
  for (const folder of distinctFolders(base?.folders ?? {})) writeFileSync(join(folder, "tasks"), String(container.initPid));
  groups?.sweep();
  assert.ok(foldersOf("four").every((folder) => existsSync(folder)));
  container.child.kill("SIGKILL");
  await once(container.child, "exit");
  groups?.sweep();
  assert.deepEqual(foldersOf("four").filter(existsSync), []);
});

test("a command that cannot enter its sandbox's group is not started", options, async () => {
  const outside = { entrances: foldersOf("none").map((folder) => join(folder, "tasks")) };
  const program = startProgram(["/bin/true"], { sandbox: { group: outside } });
  await assert.rejects(program.exited, { code: "internal_error" });
});

test("limits are set as asked", options, async () => {
  await groups?.join("five", await first(), limits);
  const value = (controller: "memory" | "cpu" | "pids", file: string): string =>
    readFileSync(join(base?.folders[controller] ?? "", workerId, "five", file), "utf8").trim();
  assert.equal(value("memory", "memory.limit_in_bytes"), String(32 * 1024 ** 2));
  assert.equal(value("cpu", "cpu.cfs_quota_us"), "50000");
  assert.equal(value("cpu", "cpu.shares"), "512");
  assert.equal(value("pids", "pids.max"), "20");
});
