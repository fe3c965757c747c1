/**
 * Snapshots with the memory of sandboxes, on a real machine with CRIU: a program with everything that a program can have in memory is
 * copied while it runs on, and every copy goes on from the same instant.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { fixture } from "../helpers/fixture.ts";
import { until } from "../helpers/until.ts";
import { Attending, inTerminal } from "./attending.ts";
import { Client } from "./client.ts";
import { assertNoJump, Counters, counterPattern, inBackground } from "./counter.ts";
import { bridgeCriu } from "./criu.ts";
import { Machine, volumeDir } from "./machine.ts";

const machine = await fixture(Machine.start("memory"));
const client = new Client((...argv) => machine.run(...argv), "http://127.0.0.1:8080", machine.key);
const counters = new Counters(client);
const ask = counters.ask.bind(counters);
const counts = counters.counts.bind(counters);
const service = "sandgate-worker.service";
const attending = await Attending.on(machine, client);
const attend = attending.attend.bind(attending);
const sessionsOf = attending.sessionsOf.bind(attending);
const faultFile = "/run/sandgate-fault";

interface Snapshot {
  readonly id: string;
  readonly memory: boolean;
  readonly memory_reason: string | null;
  readonly pause_ms: number;
}
interface Sandbox {
  readonly id: string;
  readonly memory_restored?: boolean;
  readonly memory_reason?: string | null;
}

async function snapshot(id: string, body: object = { memory: "require" }): Promise<Snapshot> {
  const taken = await client.call<Snapshot>(`/v1/sandboxes/${id}/snapshot`, body);
  assert.equal(taken.error, undefined, JSON.stringify(taken.error));
  return taken;
}

async function restore(snapshotId: string, body: object = { memory: "require" }): Promise<string> {
  const made = await client.call<Sandbox>(`/v1/snapshots/${snapshotId}/restore`, body);
  assert.equal(made.error, undefined, JSON.stringify(made.error));
  return made.id;
}

const remove = (...ids: readonly string[]): Promise<unknown> =>
  Promise.all(
    ids.map((id) => machine.shell(`curl -sS -X DELETE -H "x-api-key: $(cat /var/lib/sandgate/api-key)" http://127.0.0.1:8080/v1/sandboxes/${id}/delete`)),
  );

/** Waits until the worker answers again, and a program that counts goes on. */
async function goesOn(id: string): Promise<void> {
  const before = await until("the sandbox answers", () => counts(id), 90_000);
  await until("the program counts on", async () => (await counts(id)).length > before.length + 3, 30_000);
}

let source = "";

test("set-up", async (context) => {
  context.diagnostic(await bridgeCriu(machine));
  await machine.install([], [`SANDGATE_VOLUME=${volumeDir}`, `SANDGATE_TEST_FAULT=${faultFile}`]);
  await until("containers wait in the pool", async () => Number(await machine.shell("pgrep -c '^.sandgate-exec' || true")) >= 2, 60_000);
  source = await client.create();
  assert.match(await machine.shell("journalctl --output cat"), new RegExp(`"sandbox_created".*${source}.*"prepared":true`), "it was a container of the pool");
  await counters.start(source, 100);
});

test("each of three clones goes on from the instant of the snapshot, and the source never notices", async () => {
  const before = await ask(source);
  assert.equal(before.whole, true);
  const { id, memory, pause_ms } = await snapshot(source);
  assert.equal(memory, true);
  assert.ok(pause_ms > 0);
  const copies = [await restore(id), await restore(id), await restore(id)];
  for (const copy of copies) {
    const [first, second] = [await ask(copy), await ask(copy)];
    assert.deepEqual([first.asked, second.asked], [before.asked + 1, before.asked + 2]);
    assert.ok(first.whole && second.whole && second.count > first.count);
    await counters.assertNoJump(copy);
  }
  await ask(source);
  assert.equal((await ask(source)).asked, before.asked + 2);
  await counters.assertNoJump(source);
  // The transaction is each one's own.
  const [one = "", other = ""] = copies;
  await ask(one, "commit");
  const rows = (sandbox: string): Promise<string> =>
    client.output(sandbox, "python3 -c \"import sqlite3; print(sqlite3.connect('/root/database').execute('select count(*) from rows').fetchone()[0])\"");
  assert.equal((await rows(one)).trim(), String(before.asked + 3));
  assert.equal((await rows(other)).trim(), "0");
  await remove(...copies);
});

test("a copy has a name, a generation, a network, limits and a control group of its own", async () => {
  const { id } = await snapshot(source);
  const [one, other] = [await restore(id), await restore(id)];
  for (const file of ["/etc/hostname", "/proc/sys/kernel/hostname", "/run/.sandgate/generation"]) {
    const seen = await Promise.all([source, one, other].map((each) => client.output(each, `cat ${file}`)));
    assert.equal(new Set(seen).size, 3, `${file}: ${seen.join()}`);
  }
  assert.match(await client.output(one, "cat /proc/net/dev"), /tap0/);
  const ranges = await Promise.all([source, one, other].map((each) => client.output(each, "cat /proc/1/uid_map")));
  assert.equal(new Set(ranges).size, 3);
  const groups = await machine.shell(`pgrep -f '${counterPattern}' | while read -r pid; do sed -n 's/^0:://p' /proc/$pid/cgroup; done`);
  assert.equal(new Set(groups.trim().split("\n")).size, 3);
  const [file = ""] = groups.trim().split("\n");
  assert.match(file, /libpod-/);
  await remove(one, other);
});

test("commands, files, sessions, status and further snapshots work in a copy", async () => {
  const copy = await restore((await snapshot(source)).id);
  assert.equal((await client.call<{ exit_code: number }>(`/v1/sandboxes/${copy}/execute`, { command: "sleep 60", timeout: 1 })).exit_code, 124);
  assert.equal(await client.output(copy, "ps ax | grep -c '[s]leep 60' || true"), "0\n");
  assert.equal(await client.output(copy, "script -qc 'tty; echo in a terminal' /dev/null").then((text) => /dev\/pts\/\d+.*in a terminal/s.test(text)), true);
  const key = (await machine.key()).trim();
  const typed = await machine.shell(
    `printf 'tty; exit\\n' | SANDGATE_API_KEY=${key} TERM=dumb script -qec "/usr/local/bin/sandgate exec -it ${copy}" /dev/null || true`,
  );
  assert.match(typed, /\/dev\/pts\/\d+/);
  const { current } = await client.call<{ current: { processes: number; memory_mb: number } }>(`/v1/sandboxes/${copy}/status`);
  assert.ok(current.processes >= 2);
  const large = await client.call<object>(`/v1/sandboxes/${copy}/execute`, { command: `true # ${"x".repeat(70_000)}` });
  assert.equal(large.error?.code, "payload_too_large");
  await remove(copy);
});

test("ten clones of clones", async () => {
  let [from, { asked }] = [source, await ask(source)];
  for (let generation = 1; generation <= 10; generation++) {
    const copy = await restore((await snapshot(from)).id);
    if (from !== source) await remove(from);
    const state = await ask(copy);
    assert.deepEqual([state.asked, state.whole], [++asked, true], `generation ${generation}`);
    from = copy;
  }
  await counters.assertNoJump(from);
  await remove(from);
  await counters.assertNoJump(source);
});

test("what cannot be kept is said, and files are taken instead", async () => {
  const idle = await client.create();
  const taken = await snapshot(idle, {});
  assert.deepEqual([taken.memory, taken.memory_reason], [false, "nothing runs in the sandbox"]);
  const refused = await client.call<object>(`/v1/sandboxes/${idle}/snapshot`, { memory: "require" });
  assert.deepEqual([refused.error?.code, /nothing runs in the sandbox/.test(refused.error?.message ?? "")], ["unprocessable", true]);
  assert.equal((await snapshot(source, { quick: true })).memory, false);
  assert.equal((await snapshot(source, { memory: "skip" })).memory, false);
  await remove(idle);
});

test("a shell in a terminal goes on in every copy with its jobs, and its session can be attached to there", async () => {
  const typed = { type: "kept=yes; cd /tmp; sleep 1000 &\r" };
  await attend(source, inTerminal, { see: "# " }, typed, { see: "# " }, { type: "echo before''-it\r" }, { see: "before-it" });
  const [former] = await sessionsOf(source);
  const snapshotId = (await snapshot(source)).id;
  for (const exitCode of [7, 8]) {
    const copy = await restore(snapshotId);
    const [session, ...others] = await sessionsOf(copy);
    assert.deepEqual([session?.command, session?.tty, session?.status, others.length], [null, true, "running", 0]);
    assert.notEqual(session?.session_id, former?.session_id);
    const { output, exit } = await attend(
      copy,
      { type: "attach", session_id: session?.session_id, since: 0 },
      { see: "before-it" },
      { type: "echo $kept $PWD $(stty size) $(jobs | wc -l) $(tty)\r" },
      { see: "yes /tmp 33 91 1 /dev/pts/" },
      { say: { type: "resize", cols: 120, rows: 40 } },
      { type: "stty size\r" },
      { see: "40 120" },
      // Typed before the shell has handed the terminal over, Ctrl-C would be the shell's.
      { type: "sh -c 'echo slee''ping; exec sleep 500'\r" },
      { see: "sleeping" },
      { type: "\u0003" },
      { type: `echo ended''-it; exit ${exitCode}\r` },
      { see: "ended-it" },
      { end: true },
    );
    assert.equal(exit?.exit_code, exitCode, output);
    // It is a sandbox like any other.
    const again = await attend(copy, inTerminal, { see: "# " }, { type: "echo new''-one; exit 4\r" }, { see: "new-one" }, { end: true });
    assert.equal(again.exit?.exit_code, 4);
    await remove(copy);
  }
  const { exit } = await attend(
    source,
    { type: "attach", session_id: former?.session_id },
    { type: "echo $kept $(jobs | wc -l)\r" },
    { see: "yes 1" },
    { type: "kill %1; exit 3\r" },
    { end: true },
  );
  assert.equal(exit?.exit_code, 3);
});

/** Writes n1, n2 and so on until it is told that it is enough. */
const writing = "n=0; until [ -e /root/enough ]; do n=$((n + 1)); echo n$n; sleep 0.05; done; echo all";
const tellEnough = (id: string): Promise<string> => client.output(id, "touch /root/enough");

function assertAllWritten(output: string, newline: string, id: string): void {
  const lines = output.split(newline);
  assert.deepEqual(lines, [...Array.from({ length: lines.length - 2 }, (_, index) => `n${index + 1}`), "all", ""], id);
}

test("a terminal that is written to during the snapshot loses nothing, in the source or in a copy of a copy", async () => {
  const watched = attend(source, { ...inTerminal, command: `${writing}; exit 5` }, { see: "all\r\n" }, { end: true });
  await until("it writes", async () => (await client.output(source, "ps ax")).includes("until"), 30_000);
  const copy = await restore((await snapshot(source)).id);
  const second = await restore((await snapshot(copy)).id);
  const all = [source, copy, second];
  await Promise.all(all.map(tellEnough));
  const [ofSource, ...ofCopies] = await Promise.all([watched, toTheEnd(copy), toTheEnd(second)]);
  for (const [index, seen] of [ofSource, ...ofCopies].entries()) {
    assertAllWritten(seen.output, "\r\n", all[index] ?? "");
    assert.equal(seen.exit?.exit_code, 5);
  }
  await client.output(source, "rm /root/enough");
  await remove(copy, second);
});

async function toTheEnd(id: string): Promise<Awaited<ReturnType<typeof attend>>> {
  const [session] = await sessionsOf(id);
  return attend(id, { type: "attach", session_id: session?.session_id, since: 0 }, { see: "all\r\n" }, { end: true });
}

test("every sandbox of a fork goes on from now, and programs that ask for it learn by a signal that they are copies", async () => {
  const { id, error } = await client.call<Sandbox>("/v1/sandboxes/create", {
    image: "default",
    resources: { storage: 1 },
    env_vars: { SANDGATE_CLONED: "SIGUSR2" },
  });
  assert.equal(error, undefined, JSON.stringify(error));
  await client.output(
    id,
    inBackground(`sh -c 'trap "echo told >> /root/told" USR2; n=0; while :; do n=$((n + 1)); echo $n >> /root/counts; sleep 0.05; done'`),
  );
  await client.output(id, inBackground("sleep 1000"));
  await until("it counts", async () => (await counts(id)).length > 10);
  const { data } = await client.call<{ data: readonly { sandbox?: Sandbox; error?: object }[] }>(`/v1/sandboxes/${id}/fork`, { count: 3, memory: "require" });
  const copies = data.map(({ sandbox, error: failure }) => sandbox?.id ?? assert.fail(JSON.stringify(failure)));
  assert.equal(copies.length, 3);
  for (const copy of copies) {
    assert.equal(await until("it is told", () => client.output(copy, "cat /root/told")), "told\n");
    assert.match(await client.output(copy, "ps axo args"), /^sleep 1000$/m);
    await counters.assertNoJump(copy);
  }
  assert.equal(await client.output(id, "ls /root | grep -c told || true"), "0\n");
  await remove(id, ...copies);
});

test("a copy gets its network again when the program that carries it was killed", async () => {
  const copy = await restore((await snapshot(source)).id);
  const devices = (id: string): Promise<string> => client.output(id, "cat /proc/net/dev /proc/net/route");
  assert.match(await devices(copy), /tap0/);
  await machine.shell("for pid in $(pgrep slirp4netns); do kill -KILL $pid; while [ -d /proc/$pid ]; do sleep 0.05; done; done");
  for (const id of [copy, source]) await until("the network is back", async () => /tap0:.*^tap0\s+00000000/ms.test(await devices(id)), 60_000);
  assert.equal((await ask(copy)).whole, true);
  await remove(copy);
});

test("commands of calls and sessions through pipes go on in the source; in a copy they end when they write", async () => {
  const running = client.output(source, `${writing} # called`);
  const piped = attend(source, { type: "start", tty: false, command: `${writing} # piped` }, { see: "all\n" }, { end: true });
  const silent = client.output(source, "until [ -e /root/enough ]; do sleep 0.05; done # silent");
  const processes = (id: string): Promise<string> => client.output(id, "ps axo args");
  await until("they run", async () => {
    const all = await processes(source);
    return ["# called", "# piped", "# silent"].every((text) => all.includes(text));
  });
  const copy = await restore((await snapshot(source)).id);
  await tellEnough(source);
  assertAllWritten(await running, "\n", source);
  assertAllWritten((await piped).output, "\n", source);
  await until("they end in the copy", async () => !/# (called|piped)/.test(await processes(copy)), 30_000);
  assert.deepEqual(await sessionsOf(copy), []);
  await silent;
  assert.equal((await ask(copy)).whole, true);
  await client.output(source, "rm /root/enough");
  await remove(copy);
});

test("a copy survives restarts of the worker, and is started again from its files when its processes are gone", async () => {
  const copy = await restore((await snapshot(source)).id);
  for (const damage of [`systemctl restart ${service}`, `kill -9 "$(systemctl show --property=MainPID --value ${service})"`]) {
    await machine.shell(damage);
    await goesOn(copy);
    await counters.assertNoJump(copy);
  }
  await client.output(copy, "echo kept > /root/kept; sync");
  await machine.shell(
    `for pid in $(pgrep -f '^/run/.sandgate-'); do grep -q '^NSpid:.*[[:space:]]1$' /proc/$pid/status && [ "$(nsenter -t $pid -u hostname)" = sandbox-${copy.slice(-8)} ] && kill -9 $pid; done; true`,
  );
  assert.equal(await until("it is started again", () => client.output(copy, "cat /root/kept"), 60_000), "kept\n");
  assert.match(await client.output(copy, "cat /proc/net/dev"), /tap0/);
  await assert.rejects(ask(copy));
  await remove(copy);
});

for (const [what, point, damage] of [
  ["the worker, while everything stands still", "snapshot.dumped", `systemctl kill --signal=KILL ${service}`],
  ["the helper, while everything stands still", "snapshot.dumped", "systemctl kill --signal=KILL 'sandgate-helper@*'"],
  ["the worker, when all is taken", "snapshot.copied", `systemctl kill --signal=KILL ${service}`],
] as const) {
  test(`kill -9 of ${what}: the source runs on`, async () => {
    const before = (await counts(source)).length;
    // Stopped there, so that there is time to kill.
    await machine.shell(`printf %s '${point} SIGSTOP' > ${faultFile}`);
    const call = client.call<object>(`/v1/sandboxes/${source}/snapshot`, { memory: "require" }).catch(() => undefined);
    const pid = (await machine.shell(`systemctl show --property=MainPID --value ${service}`)).trim();
    await until("the worker stands there", async () => /^State:\s+T/m.test(await machine.run("cat", `/proc/${pid}/status`)), 30_000);
    await machine.shell(`rm ${faultFile}; ${damage}; kill -CONT ${pid} 2> /dev/null || true`);
    await call;
    await goesOn(source);
    const seen = await counts(source);
    assertNoJump(seen);
    assert.ok(seen.length > before);
    assert.equal((await ask(source)).whole, true);
  });
}

test("kill -9 of the worker while a copy is being made leaves nothing of it", async () => {
  const { id } = await snapshot(source);
  for (const point of ["restore.held", "restore.copied"]) {
    await machine.shell(`printf %s ${point} > ${faultFile}`);
    await client.call<object>(`/v1/snapshots/${id}/restore`, { memory: "require" }).catch(() => undefined);
    await machine.shell(`rm -f ${faultFile}`);
    await goesOn(source);
    await onlyTheSource();
  }
  const copy = await restore(id);
  assert.equal((await ask(copy)).whole, true);
  await remove(copy);
});

const onlyTheSource = (): Promise<unknown> =>
  until("only the source's program runs", async () => (await machine.shell(`pgrep -fc '${counterPattern}' || true`)).trim() === "1", 60_000);

const criu = "/usr/sbin/criu";

for (const [what, killed] of [
  ["the helper", "$PPID"],
  ["the helper and CRIU", "$PPID $$"],
] as const) {
  test(`kill -9 of ${what} while a copy is being made: the sandbox has its files and says why`, async () => {
    const { id } = await snapshot(source);
    const kill = `case "$*" in *restore*) (sleep 0.05; kill -KILL ${killed}) & esac`;
    await machine.shell(`cp -p ${criu} ${criu}.kept; sed -i '1a ${kill}' ${criu}`);
    const made = await client.call<Sandbox>(`/v1/snapshots/${id}/restore`, { memory: "prefer" }).finally(() => machine.shell(`mv ${criu}.kept ${criu}`));
    assert.deepEqual([made.error, made.memory_restored], [undefined, false]);
    assert.match(made.memory_reason ?? "", /helper/);
    assert.ok((await counts(made.id)).length > 0);
    await onlyTheSource();
    assert.equal((await ask(source)).whole, true);
    const whole = await restore(id);
    assert.equal((await ask(whole)).whole, true);
    await remove(made.id, whole);
  });
}

test("an image that another kernel has made is never restored: the sandbox has its files and says why", async () => {
  const { id } = await snapshot(source);
  const others = "sed -i 's/ on Linux [^ ]*/ on Linux 1.2.3/' \"/var/lib/sandgate/memory/$(ls -t /var/lib/sandgate/memory | head -n 1)/image.json\"";
  await machine.shell(others);
  const reason = /made by CRIU \S+ on Linux 1\.2\.3 .*, and this is /;
  const refused = await client.call<Sandbox>(`/v1/snapshots/${id}/restore`, { memory: "require" });
  assert.equal(refused.error?.code, "unprocessable");
  assert.match(refused.error?.message ?? "", reason);
  const made = await client.call<Sandbox>(`/v1/snapshots/${id}/restore`, {});
  assert.deepEqual([made.error, made.memory_restored], [undefined, false]);
  assert.match(made.memory_reason ?? "", reason);
  assert.ok((await counts(made.id)).length > 0);
  await assert.rejects(ask(made.id));
  await remove(made.id);
});

test("images of memory go with their snapshots", async () => {
  const count = async (): Promise<number> => Number(await machine.shell("ls /var/lib/sandgate/memory | wc -l"));
  const list = await client.call<{ data: readonly Snapshot[] }>("/v1/snapshots/list?page_size=100");
  assert.equal(await count(), list.data.filter(({ memory }) => memory).length);
  for (const each of list.data)
    await machine.shell(`curl -sS -X DELETE -H "x-api-key: $(cat /var/lib/sandgate/api-key)" http://127.0.0.1:8080/v1/snapshots/${each.id}`);
  await until("they are gone", async () => (await count()) === 0, 30_000);
});
