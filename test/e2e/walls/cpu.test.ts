/** What one account's sandbox can do to the others by taking all the CPU that it can get. */
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { PeerWatch } from "../../../shared/bus/presence.ts";
import { peers as names } from "../../../shared/bus/subjects.ts";
import { groupFoldersOf } from "../../../shared/util/control-groups.ts";
import { newId } from "../../../shared/util/ids.ts";
import { statOf } from "../../../shared/util/proc.ts";
import { lowPriority } from "../../../worker/runtime/process/priority.ts";
import { commandLineOf, pidNamespaceOf, processesByNamespace } from "../../../worker/runtime/process/proc.ts";
import { Api, type Chunk, chunksOf } from "../../helpers/api.ts";
import { connectBus } from "../../helpers/bus.ts";
import { atEnd, fixture } from "../../helpers/fixture.ts";
import { signUp } from "../../helpers/members.ts";
import { quiet } from "../../helpers/nats.ts";
import { preparedInstance } from "../../helpers/prepare.ts";
import { expectRefused, probeOne } from "../../helpers/probes.ts";
import { Mark, Sandboxes } from "../../helpers/sandboxes.ts";
import { start } from "../../helpers/sessions.ts";
import { sharedStack } from "../../helpers/shared.ts";
import { until } from "../../helpers/until.ts";

const stack = sharedStack();
const api = new Api(stack);
const sandboxes = fixture(new Sandboxes(api));
const loops = 200;
/** Waits at the gate first: beside loops that run, the last ones would take long to start. */
const loop = "read -r _ < /tmp/gate; while :; do :; done";
/** Each in a session of its own: where a session is what gets a share of the CPU, that takes most. */
const busy = `mkfifo /tmp/gate; for i in $(seq ${loops}); do setsid sh -c '${loop}' & done; sleep 1 > /tmp/gate; wait`;
const mark = new Mark();
const gone: string[] = [];

const bus = await fixture(connectBus(stack.natsUrl, "test-cpu"));
const peers = new PeerWatch(bus, names.gateway(newId("gateway")), quiet);
peers.onGone((peer) => gone.push(peer));
peers.start(() => ({}));
atEnd(() => peers.leave());
const member = await fixture(signUp(stack.url));
const other = new Api({ url: stack.url, apiKey: (await member.call<{ key: string }>("POST", "/v1/account/keys", { name: "cpu" })).key });
const [greedy, neighbour] = await Promise.all([sandboxes.make(), other.create()]);

/** The value of `nice` of a process: field 19 of proc_pid_stat(5). */
const niceOf = (pid: number): number => Number(statOf(pid)?.[16]);

const sharesOf = (dir: string): number => Number(readFileSync(join(dir, greedy, "cpu.shares"), "utf8"));

async function groupDir(): Promise<string | undefined> {
  const dir = groupFoldersOf((await preparedInstance()).account.uid)?.folders.cpu;
  if (!dir || !existsSync(dir)) return undefined;
  const worker = readdirSync(dir).find((name) => existsSync(join(dir, name, greedy)));
  assert.ok(worker, "the sandbox has a group");
  return join(dir, worker);
}

test("ends another account's streams and calls by 200 busy loops in sessions of their own", async () => {
  // Longer than it takes to take a peer for gone.
  const stream = await other.stream(neighbour, "for i in $(seq 10); do echo $i; sleep 1; done");
  const attack = new AbortController();
  const attacked = api.stream(greedy, busy, { env: mark.env, timeout: 120 }, attack.signal).then((response) => response.text());
  attacked.catch(() => {}); // It is cut off at the end.
  await until("the loops run", () => mark.living().length >= loops);
  const spaces = processesByNamespace();
  const members = spaces.get(pidNamespaceOf(mark.living()[0] as number) ?? "") ?? [];
  assert.ok(members.length > loops);
  assert.deepEqual(new Set(members.map(niceOf)), new Set([lowPriority]), "every process of the sandbox gives way to the parts");
  const dir = await groupDir();
  if (dir) {
    const group = join(dir, greedy);
    assert.equal(readFileSync(join(group, "cpu.cfs_quota_us"), "utf8").trim(), "100000");
    const inGroup = new Set(readFileSync(join(group, "cgroup.procs"), "utf8").split("\n").map(Number));
    assert.ok(
      [...inGroup].some((pid) => /slirp4netns|pasta/.test(commandLineOf(pid)[0] ?? "")),
      "and so does its network",
    );
    assert.deepEqual(
      members.filter((pid) => !inGroup.has(pid)),
      [],
      "all of them share the CPU of the sandbox",
    );
  }
  if (dir) await until("it comes after those that use little", () => sharesOf(dir) === 64);
  for (let round = 0; round < 10; round++) assert.equal((await other.execute(neighbour, "true")).exit_code, 0);
  const chunks: Chunk[] = [];
  for await (const chunk of chunksOf(stream)) chunks.push(chunk);
  assert.equal(chunks.at(-1)?.exit_code, 0, JSON.stringify(chunks.at(-1)));
  assert.deepEqual(gone, []);
  attack.abort();
  await assert.rejects(attacked, { name: "AbortError" });
  await mark.gone();
});

test("control: what uses little again has its whole weight again", async (context) => {
  const dir = await groupDir();
  if (!dir) return context.skip("this host has no CPU groups of ours");
  await until("its weight", () => sharesOf(dir) === 1_024);
});

test("gets out of its low priority by a new session, a terminal or a pipe", async () => {
  for (const command of ["nice", "setsid -w nice", "sh -c '(nice)'"]) assert.equal((await api.execute(greedy, command)).stdout, `${lowPriority}\n`);
  for (const tty of [true, false]) {
    const client = await start(api, greedy, { command: "nice", tty });
    await client.closed();
    assert.equal(client.text[1].trim(), String(lowPriority));
  }
});

const attempts: Record<string, string> = {
  "lowers its nice value by one": `os.setpriority(os.PRIO_PROCESS, 0, ${lowPriority - 1})`,
  "lowers that of all processes of its user": `os.setpriority(os.PRIO_USER, 0, ${lowPriority - 1})`,
  "raises its limit of priorities": 'call("prlimit64", 0, 13, struct.pack("QQ", 40, 40), None)',
  "raises its limit of real-time priorities": 'call("prlimit64", 0, 14, struct.pack("QQ", 99, 99), None)',
  "leaves the class of idle processes":
    "os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0)); os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))",
};

for (const [name, attempt] of Object.entries(attempts)) {
  test(name, async () => expectRefused(await probeOne(api, greedy, attempt), "EPERM", "EACCES"));
}
