/** What the kernel counts by user, and what a user may do: each sandbox has users of its own. */
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { loadConfig } from "../../../shared/config.ts";
import { attempt } from "../../../shared/util/attempt.ts";
import { distinctFolders, groupFoldersOf } from "../../../shared/util/control-groups.ts";
import { processIds } from "../../../shared/util/proc.ts";
import { findAccount } from "../../../systemd/setup/account.ts";
import { execServerPath } from "../../../worker/runtime/container/first-process.ts";
import { commandLineOf, innerPidOf } from "../../../worker/runtime/process/proc.ts";
import { Api } from "../../helpers/api.ts";
import { fixture } from "../../helpers/fixture.ts";
import { expectRefused, probeOne } from "../../helpers/probes.ts";
import { Mark, Sandboxes } from "../../helpers/sandboxes.ts";
import { sharedStack } from "../../helpers/shared.ts";
import { until } from "../../helpers/until.ts";
import { tryAsId } from "../../helpers/users.ts";

const stack = sharedStack();
const api = new Api(stack);
const sandboxes = fixture(new Sandboxes(api));
const [id, neighbour] = (await Promise.all([sandboxes.make(), sandboxes.make()])) as [string, string];
const worker = await findAccount(loadConfig());

/** What each takes one of, or fails with the kernel's error number. */
const tools = `
kept = []
def inotify():
    kept.append(libc.inotify_init())
    if kept[-1] < 0: raise OSError(ctypes.get_errno(), "")
def pipe():
    kept.append(os.pipe())
    fcntl.fcntl(kept[-1][0], 1031, 1 << 18)
def signal_that_waits():
    signal.pthread_sigmask(signal.SIG_BLOCK, [40])
    call(129 if os.uname().machine == "x86_64" else 138, os.getpid(), 40, struct.pack("iii", 40, 0, -1) + bytes(116))
`;

/** Has the sandbox take all that it can get and hold it, while the neighbour takes a little. */
async function exhaust(what: string, little: number): Promise<void> {
  const all = `
try:
    while True: ${what}()
except OSError as error: result = errno.errorcode[error.errno]
open("/tmp/taken", "w").close()
while not os.path.exists("/tmp/asked"): time.sleep(0.05)`;
  const holding = probeOne(api, id, tools + all);
  await until("all is taken", async () => (await api.execute(id, "test -e /tmp/taken")).exit_code === 0);
  const taken = await probeOne(api, neighbour, `${tools}for _ in range(${little}): ${what}()`);
  await api.execute(id, "touch /tmp/asked");
  expectRefused({ errno: String(Object.values(await holding)[0]) }, "EMFILE", "EPERM", "EAGAIN");
  await api.execute(id, "rm /tmp/taken /tmp/asked");
  assert.deepEqual(taken, { done: null });
}

test("takes all instances of inotify, so that neighbours have none", () => exhaust("inotify", 8));

test("takes all pages of pipes, so that those of neighbours cannot grow", () => exhaust("pipe", 8));

test("takes all signals that may wait, so that neighbours can send none", () => exhaust("signal_that_waits", 100));

/** The user on the host of a process that a command in a sandbox runs as its root; its group has the same number. */
async function hostUserOf(sandbox: string): Promise<number> {
  const mark = new Mark();
  const running = api.execute(sandbox, "while [ ! -e /tmp/seen ]; do sleep 0.05; done", { env: mark.env });
  await until("it runs", () => mark.living().length > 0);
  const status = readFileSync(`/proc/${mark.living()[0]}/status`, "utf8");
  await api.execute(sandbox, "touch /tmp/seen");
  await running;
  await api.execute(sandbox, "rm /tmp/seen");
  const [uid, gid] = ["Uid", "Gid"].map((name) => Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(status)?.[1]));
  assert.equal(uid, gid);
  return uid ?? 0;
}

test("is the worker's user, or a neighbour, for the host", async () => {
  const ids = await Promise.all([hostUserOf(id), hostUserOf(neighbour)]);
  assert.equal(new Set([...ids, worker.uid, 0]).size, 4, `${ids}`);
  assert.ok(Math.abs((ids[0] ?? 0) - (ids[1] ?? 0)) >= 65_536, `${ids}`);
});

test("reads, ends or debugs what is the worker's after an escape to the host", async () => {
  const user = await hostUserOf(id);
  const { pids, dataDir } = stack;
  const outcomes = await tryAsId(user, {
    environment: `fs.readFileSync("/proc/${pids.worker}/environ")`,
    memory: `memoryOf(${pids.worker})`,
    signal: `process.kill(${pids.worker}, 0)`,
    debugs: `attach(${pids.worker})`,
    data: `fs.readdirSync("${dataDir}/volumes").flatMap((id) => fs.readdirSync(join("${dataDir}/volumes", id, "volume")))`,
    secrets: `fs.readdirSync("${dataDir}/secrets")`,
    images: `fs.readdirSync("${loadConfig().storageDir}")`,
    runtime: `fs.readdirSync("/run/user/${worker.uid}")`,
  });
  for (const outcome of Object.values(outcomes)) expectRefused(outcome, "EACCES", "EPERM");
});

test("gets beyond its limits by debugging its first process", async () => {
  assert.deepEqual(await probeOne(api, id, 'call("ptrace", 16, 1, None, None)'), { done: null }, "it can be debugged");
  const user = await hostUserOf(id);
  const pid = processIds().find(
    (each) => commandLineOf(each)[0] === execServerPath && innerPidOf(each) === 1 && attempt(() => statSync(`/proc/${each}`).uid) === user,
  );
  const { folders } = groupFoldersOf(worker.uid) ?? assert.fail("this host has no groups");
  const outside = distinctFolders(folders).filter((dir) => {
    const groups = readdirSync(dir).map((name) => join(dir, name, id, "cgroup.procs"));
    return !groups.some((file) => existsSync(file) && readFileSync(file, "utf8").split("\n").includes(String(pid)));
  });
  assert.deepEqual(outside, [], "so it is in the groups of the sandbox");
});
