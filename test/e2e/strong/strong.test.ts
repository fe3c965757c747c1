/** Strong sandboxes: what other sandboxes promise, under gVisor's kernel, and never less than was asked for. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { attempt } from "../../../shared/util/attempt.ts";
import { processIds } from "../../../shared/util/proc.ts";
import { kernelOf } from "../../../worker/runtime/container/strong.ts";
import { environmentOf } from "../../../worker/runtime/process/proc.ts";
import { Accounts } from "../../helpers/accounts.ts";
import { Api } from "../../helpers/api.ts";
import { fixture } from "../../helpers/fixture.ts";
import { Sandboxes } from "../../helpers/sandboxes.ts";
import { type SessionClient, start } from "../../helpers/sessions.ts";
import { sharedStack } from "../../helpers/shared.ts";
import type { Clone, Sandbox, Snapshot } from "../../helpers/snapshots.ts";
import { startStack } from "../../helpers/stack.ts";
import { until } from "../../helpers/until.ts";

const stack = sharedStack();
const api = new Api(stack);
const sandboxes = fixture(new Sandboxes(api));
const strong = { isolation: "strong", resources: { memory: 256 } };
const id = await sandboxes.make(strong);

const output = async (command: string, sandbox = id): Promise<string> => (await api.execute(sandbox, command)).stdout;
/** Whether gVisor's kernel answers: its log says so. */
const isStrong = async (sandbox: string, of = api): Promise<boolean> => (await of.execute(sandbox, "dmesg")).stdout.includes("Starting gVisor...");
const usable = (sandbox = id): Promise<boolean> =>
  until("it is usable again", async () => (await api.execute(sandbox, "echo usable").catch(() => undefined))?.stdout === "usable\n");
/** Host processes of a sandbox, by its control groups. */
const hostProcesses = (sandbox: string): number[] =>
  processIds().filter((pid) => (attempt(() => readFileSync(`/proc/${pid}/cgroup`, "utf8")) ?? "").includes(sandbox));

interface Isolated extends Sandbox {
  readonly isolation: string;
}

test("another kernel than the host's answers, in a strong sandbox only", async () => {
  const standard = await sandboxes.make();
  assert.deepEqual([await isStrong(id), await isStrong(standard)], [true, false]);
  const shown = async (sandbox: string) => (await api.call<Isolated>("GET", `/v1/sandboxes/${sandbox}`)).body.isolation;
  assert.deepEqual([await shown(id), await shown(standard)], ["strong", "standard"]);
});

test("on the host its processes are nobody's, and another sandbox's are others'", async () => {
  const other = await sandboxes.make(strong);
  const usersOf = (sandbox: string): Set<number> =>
    new Set(hostProcesses(sandbox).map((pid) => Number(/^Uid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1])));
  const [users, others] = [usersOf(id), usersOf(other)];
  const worker = Number(/^Uid:\s+(\d+)/m.exec(readFileSync(`/proc/${stack.pids.worker}/status`, "utf8"))?.[1]);
  // Its monitor is the worker's, and shares its CPU.
  for (const each of [users, others]) each.delete(worker);
  assert.deepEqual([users.size, others.size, [...users].filter((user) => others.has(user))], [1, 1, []]);
  assert.equal(
    await output("stat -c '%u %a' /etc/hosts /etc/resolv.conf; echo 192.0.2.1 example >> /etc/hosts; tail -n 1 /etc/hosts"),
    "0 644\n0 644\n192.0.2.1 example\n",
  );
  assert.notEqual((await api.execute(id, "head -c 4M /dev/zero >> /etc/hosts")).exit_code, 0);
  await api.delete(other);
});

test("a command has its output apart, exit code, user, folder and environment", async () => {
  const { stdout, stderr, exit_code } = await api.execute(id, 'echo "$PWD $A"; id -u; echo apart >&2; exit 7', { working_dir: "/tmp", env: { A: "b c" } });
  assert.deepEqual([stdout, stderr, exit_code], ["/tmp b c\n0\n", "apart\n", 7]);
  assert.equal((await api.execute(id, "kill -9 $$")).exit_code, 137);
  const { status, body } = await api.call<{ error: { reason: string } }>("POST", `/v1/sandboxes/${id}/execute`, { command: "true", working_dir: "/nope" });
  assert.deepEqual([status, body.error.reason], [422, "no_such_working_dir"]);
});

test("a timeout ends all that a command started, and nothing else", async () => {
  await output("setsid sleep 1001 > /dev/null 2>&1 &");
  const daemons = "sleep 1002 & (sleep 1003 &); setsid sh -c 'sleep 1004 & sleep 1005' & echo started; wait";
  const { status, exit_code, stdout, stderr } = await api.execute(id, daemons, { timeout: 1 });
  assert.deepEqual([status, exit_code, stdout, stderr], ["timeout", 124, "started\n", ""]);
  assert.equal(await output("ps -eo args | grep -o '^sleep .*'; pkill sleep"), "sleep 1001\n");
});

test("the sandbox goes on when its programs end at the same moment as their command, or as what keeps them together", async () => {
  await output("sleep 1001 > /dev/null 2>&1 &");
  const commands = { "true & true & true & true & true": 0, "kill -9 $PPID": 137, "pkill -f '/nothing.like.this'; true": 143 };
  for (const [command, code] of Object.entries(commands)) {
    const codes = await Promise.all(Array.from({ length: 12 }, async () => (await api.execute(id, command)).exit_code));
    assert.deepEqual([...new Set(codes)], [code], command);
  }
  assert.equal(await output("pgrep -cx sleep; pkill sleep"), "1\n");
});

test("files go in and out", async () => {
  const bytes = Buffer.from(Array.from({ length: 300_000 }, (_, index) => index % 251));
  const path = encodeURIComponent("/srv/new/file.bin");
  const uploaded = await api.raw("POST", `/v1/sandboxes/${id}/upload?path=${path}`, bytes, { "content-type": "application/octet-stream" });
  assert.equal(uploaded.status, 200);
  assert.equal(await output("stat -c %s /srv/new/file.bin; ls /srv/new"), "300000\nfile.bin\n");
  const downloaded = await api.raw("GET", `/v1/sandboxes/${id}/download?path=${path}`);
  assert.deepEqual(Buffer.from(await downloaded.arrayBuffer()), bytes);
  assert.equal((await api.call<{ size: number }>("GET", `/v1/sandboxes/${id}/stat?path=${path}`)).body.size, 300_000);
});

/** Types a line in a shell and waits for what it prints. */
async function enter(client: SessionClient, line: string, seen: string | RegExp): Promise<void> {
  const from = client.text[1].length;
  client.type(`${line}\r`);
  await client.sees(seen, from);
}

test("a session has a terminal with job control, a size and signals", async () => {
  const client = await start(api, id, { command: "PS1='# ' bash --norc -i", tty: true, cols: 101, rows: 31 });
  await client.sees("# ");
  await enter(client, "stty size", "31 101\r\n");
  client.send({ type: "resize", cols: 60, rows: 20 });
  await until("the new size", async () => {
    await enter(client, "stty size; echo e''nd", "end\r\n");
    return client.text[1].includes("20 60");
  });
  for (const [key, answer] of Object.entries({ "\x03": "is 130", "\x1a": "is 148" })) {
    await enter(client, "sh -c 'echo slee''ping; exec sleep 1000'", "sleeping\r\n");
    const ended = client.text[1].length;
    client.type(key);
    // What is typed before the prompt may be thrown away with the signal.
    await client.sees("# ", ended);
    await enter(client, "echo i''s $?", answer);
  }
  // A shell with a job that is still stopped does not exit, nor does it wait for one.
  client.type('kill -9 %1; until [ -z "$(jobs -s)" ]; do sleep 0.1; done; exit 5\r');
  await client.closed();
  assert.deepEqual(client.exit, { type: "exit", exit_code: 5 });
});

test("a session without a terminal has its streams apart, and can be signalled and killed", async () => {
  const client = await start(api, id, {
    command: "trap 'echo trapped; exit 3' USR1; read line; echo $line; echo apart >&2; while :; do sleep 0.1; done",
    tty: false,
  });
  client.type("typed\n");
  await client.sees("typed\n");
  client.send({ type: "signal", signal: "SIGUSR1" });
  await client.closed();
  assert.match(client.text[1], /trapped\n$/);
  assert.match(client.text[2], /^apart\n/);
  const killed = await start(api, id, { command: "echo runs; sleep 1000", tty: false });
  await killed.sees("runs\n");
  killed.send({ type: "kill" });
  await killed.closed();
  assert.equal(killed.exit?.exit_code, 137);
  assert.equal(await output("pgrep sleep"), "");
});

test("the network is closed as in other sandboxes", async () => {
  const connections: unknown[] = [];
  const server = createServer((socket) => connections.push(socket.destroy()));
  await once(server.listen(0, "0.0.0.0"), "listening");
  const hosts = Object.values(networkInterfaces()).flatMap((all) => (all ?? []).filter(({ family }) => family === "IPv4").map(({ address }) => address));
  const targets = [...hosts, "10.0.2.2", "169.254.169.254"];
  const script = `import socket
for host in ${JSON.stringify(targets)}:
  s = socket.socket(); s.settimeout(2)
  try: s.connect((host, ${(server.address() as AddressInfo).port})); print(host)
  except OSError: pass
print("tried")
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(b"x", ("10.0.2.3", 53)); print("resolver")`;
  assert.equal(await output(`python3 - <<'END'\n${script}\nEND`), "tried\nresolver\n");
  assert.deepEqual(connections, []);
  server.close();
});

test("a snapshot stands still, and what is made of it is strong as well", async () => {
  await output(
    "echo kept > /srv/kept; (while :; do echo line >> /srv/a; echo line >> /srv/b; sleep 0.1; done) > /dev/null 2>&1 & until [ -s /srv/b ]; do sleep 0.1; done",
  );
  const answer = async <T>(path: string): Promise<T> => {
    const { status, body } = await api.call<T>("POST", path, {});
    assert.equal(status, 201, `${path}: ${JSON.stringify(body)}`);
    return body;
  };
  const snapshot = await answer<Snapshot>(`/v1/sandboxes/${id}/snapshot`);
  assert.equal(snapshot.consistency, "application");
  const made = await answer<Isolated>(`/v1/snapshots/${snapshot.id}/restore`);
  const cloned = await answer<Clone>(`/v1/sandboxes/${id}/clone`);
  const copies = [made, cloned.sandbox as Isolated];
  try {
    for (const copy of copies) {
      assert.equal(copy.isolation, "strong");
      const read = await api.execute(copy.id, "cat /srv/kept; wc -l < /srv/a; wc -l < /srv/b");
      const [kept, a, b] = read.stdout.split("\n");
      assert.equal(kept, "kept", JSON.stringify(read));
      assert.ok([0, 1].includes(Number(a) - Number(b)), `${a} ${b}`);
    }
    assert.equal(await isStrong(made.id), true);
  } finally {
    await Promise.all(copies.map((copy) => api.delete(copy.id)));
    for (const one of [snapshot.id, cloned.snapshot.id]) await api.call("DELETE", `/v1/snapshots/${one}`);
    await output("pkill -f '[/]srv/a'; true");
  }
});

/** What the worker has said of the sandbox. */
function saidOfIt(): string[] {
  const logs = join(stack.dataDir, "logs");
  const files = readdirSync(logs).filter((name) => name.startsWith("worker"));
  const lines = files.flatMap((name) => readFileSync(join(logs, name), "utf8").split("\n"));
  return lines.filter((line) => line.includes(id) && /"level":"(warn|error)"|restart|lost|stopped/.test(line)).slice(-10);
}

test("the kernel limits memory and processes; the sandbox is started again with its files", async (context) => {
  // Seen once: its kernel had ended before, for a reason that the worker's log would have told.
  if ((await api.execute(id, "true").catch(() => undefined)) === undefined) for (const line of saidOfIt()) context.diagnostic(line);
  await usable();
  await output("echo kept > /srv/kept");
  const full = await api.execute(id, 'python3 -c "x = bytearray(400 << 20); print(len(x))"', { timeout: 60 });
  assert.deepEqual([full.status, full.exit_code], ["completed", 137]);
  assert.match(full.error ?? "", /memory/);
  await usable();
  const bomb = await api.execute(id, "bash -c ':(){ :|:& };:'; sleep 60", { timeout: 3 });
  assert.notEqual(bomb.exit_code, 0);
  await usable();
  assert.equal(await output("cat /srv/kept; ps -e | grep -c bash"), "kept\n0\n");
});

test("status shows what it uses and how many processes run in it", async () => {
  const running = await start(api, id, { command: "sleep 1000", tty: false });
  const { body } = await api.call<{ current: { processes: number; memory_mb: number } }>("GET", `/v1/sandboxes/${id}/status`);
  // The first one, which only waits, what keeps a command together, and the command: itself or a shell with it.
  assert.ok(body.current.processes >= 4 && body.current.processes <= 5, JSON.stringify(body));
  assert.ok(body.current.memory_mb > 0);
  running.send({ type: "kill" });
  await running.closed();
});

test("a sandbox whose kernel ends is started again with its files", async () => {
  await output("echo still > /srv/still");
  const [kernel] = hostProcesses(id).filter((pid) => (attempt(() => readFileSync(`/proc/${pid}/cmdline`, "utf8")) ?? "").startsWith("runsc-sandbox"));
  process.kill(kernel ?? assert.fail("it has no kernel"), "SIGKILL");
  await until("another kernel", async () => (await api.execute(id, "cat /srv/still").catch(() => undefined))?.stdout === "still\n");
});

test("an account whose sandboxes must be strong gets no others", async () => {
  const accounts = fixture(await Accounts.open(stack));
  const account = await accounts.make("strict");
  const changed = await api.call("POST", `/v1/admin/accounts/${account.id}`, { isolation: "strong" });
  assert.deepEqual([changed.status, changed.body.isolation], [200, "strong"]);
  const { status, body } = await account.api.call<Isolated>("POST", "/v1/sandboxes/create", { image: "default", isolation: "standard" });
  assert.deepEqual([status, body.isolation], [201, "strong"]);
  assert.equal((await account.api.execute(body.id, "dmesg")).stdout.includes("gVisor"), true);
  await account.api.delete(body.id);
});

test("an installation whose sandboxes must be strong makes none where they cannot be", async () => {
  await using weak = await startStack({ name: "weak", settings: { SANDGATE_CONTROL_GROUPS: "none", SANDGATE_ISOLATION: "strong" } });
  const { status, body } = await new Api(weak).call<{ error: object }>("POST", "/v1/sandboxes/create", { image: "default" });
  assert.deepEqual(
    [status, { ...body.error, message: "", request_id: "" }],
    [422, { code: "unprocessable", reason: "not_supported", message: "", request_id: "" }],
  );
});

test("an installation whose sandboxes must be strong makes all of them so, however they are made, and keeps none waiting", async () => {
  await using strict = await startStack({ name: "strict", settings: { SANDGATE_ISOLATION: "strong", SANDGATE_POOL_SIZE: "2" } });
  const of = new Api(strict);
  const make = async (path: string, body: object): Promise<Isolated> => {
    const answer = await of.call<Isolated & { sandbox?: Isolated }>("POST", path, body);
    assert.equal(answer.status, 201, JSON.stringify(answer.body));
    return answer.body.sandbox ?? answer.body;
  };
  const created = await make("/v1/sandboxes/create", { image: "default" });
  const { body: snapshot } = await of.call<Snapshot>("POST", `/v1/sandboxes/${created.id}/snapshot`, {});
  const made = [
    created,
    await make("/v1/sandboxes/create", { image: "default", isolation: "standard" }),
    await make(`/v1/snapshots/${snapshot.id}/restore`, {}),
    await make(`/v1/sandboxes/${created.id}/clone`, {}),
  ];
  for (const { id: each, isolation } of made) assert.deepEqual([isolation, await isStrong(each, of)], ["strong", true]);
  // Those that wait are standard ones, and would be there by now.
  const containers = (await strict.containers()).map(({ sandboxId }) => sandboxId);
  assert.deepEqual(containers.sort(), made.map((sandbox) => sandbox.id).sort());
});

test("nothing is left of a deleted sandbox", async () => {
  assert.ok(hostProcesses(id).length > 2);
  await api.delete(id);
  await until("its processes are gone", () => hostProcesses(id).length === 0);
  const { XDG_RUNTIME_DIR: dir = "" } = Object.fromEntries(environmentOf(stack.pids.worker).map((pair) => pair.split("=")));
  // Other installations of these tests keep theirs in the same folder.
  const left = (): string[] => readdirSync(join(dir, "runsc")).filter((name) => kernelOf(/[0-9a-f]{64}/.exec(name)?.[0] ?? assert.fail(name)) === undefined);
  await until("the files of those that have no kernel are gone", () => left().length === 0);
});
