/** The command line against a real installation: every command, for people and as JSON. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { execa } from "execa";
import type { ExecutionResult, LogEntry, PageOf, SandboxInfo, SnapshotInfo } from "../../../shared/client/types.ts";
import { Cli } from "../../helpers/cli.ts";
import { openClient } from "../../helpers/client.ts";
import { isoTime } from "../../helpers/expect.ts";
import { fixture } from "../../helpers/fixture.ts";
import { until } from "../../helpers/until.ts";

const { account, client } = await fixture(openClient());
const cli = fixture(new Cli(account.api));

test("sandboxes are made, listed, found by name and by the beginning of their id, and deleted", async () => {
  const id = await cli.done("create", "default", "--name", "web", "--cpus", "1", "-m", "256m", "--storage", "2", "-e", "GREETING=hello", "--network", "none");
  assert.match(id, /^sb_[0-9a-z]{26}$/);
  const [titles = "", row = "", ...more] = (await cli.done("ls")).split("\n");
  assert.match(titles, /^ID +NAME +STATUS +IMAGE +CPUS +MEMORY +STORAGE +NETWORK +CREATED$/);
  assert.match(row, new RegExp(`^${id} +web +running +default +1 +256 MiB +2 GB +none +just now$`));
  assert.deepEqual(more, []);
  assert.equal(await cli.done("ps", "-q"), id);
  const { data, pagination } = await cli.json<PageOf<SandboxInfo>>("ls");
  assert.deepEqual([data.map((one) => one.id), pagination.total_items], [[id], 1]);
  for (const name of ["web", id, id.slice(0, -3), id.slice(3, -2)]) assert.equal(await cli.done("exec", name, "--", "printenv", "GREETING"), "hello");
  assert.equal(await cli.done("rm", "web"), id);
  assert.equal((await cli.json<PageOf<SandboxInfo>>("ls")).data.length, 0);
});

test("a name that several have is refused with all of them", async () => {
  const first = await cli.run("create", "-n", "twin");
  const second = await cli.run("create", "-n", "twin", "--json");
  const ids = [first.stdout, (JSON.parse(second.stdout) as SandboxInfo).id];
  assert.deepEqual([first.exitCode, first.stderr, second.exitCode], [0, "", 0]);
  assert.equal(second.stderr, `sandgate: another sandbox is also called twin (${ids[0]}): use ids to tell them apart; this one is ${ids[1]}`);
  const { exitCode, stdout, stderr } = await cli.run("rm", "twin");
  assert.deepEqual([exitCode, stdout], [1, ""]);
  assert.match(stderr, /^sandgate: twin can be any of these 2 sandboxes; use an id:\n/);
  for (const id of ids) assert.ok(stderr.includes(`  ${id}  twin`), stderr);
  assert.match((await cli.run("exec", ids[0]?.slice(0, 6) ?? "", "true")).stderr, /can be any of these 2 sandboxes/);
  assert.deepEqual((await cli.done("rm", "--all", "--force")).split("\n").sort(), ids.sort());
});

test("exec passes output, standard input and exit codes on, byte by byte", async () => {
  await cli.done("create", "-n", "box");
  const { exitCode, stdout, stderr } = await cli.run(
    "exec",
    "-w",
    "/tmp",
    "-e",
    "A=1",
    "box",
    "--",
    "sh",
    "-c",
    'echo "$A $PWD $0 $1"; echo oops >&2; exit 7',
    "it's",
    "two words",
  );
  assert.deepEqual([exitCode, stdout, stderr], [7, "1 /tmp it's two words", "oops"]);
  assert.equal(await cli.done("exec", "box", "printf 'a b' | wc -c"), "3");
  const bytes = Uint8Array.from({ length: 300_000 }, (_, index) => Math.imul(index, 2_654_435_761) >>> 24);
  const { createHash } = await import("node:crypto");
  const hash = createHash("sha256").update(bytes).digest("hex");
  assert.equal((await cli.runWith({ input: bytes }, "exec", "-i", "box", "--", "sha256sum")).stdout, `${hash}  -`);
  assert.match((await cli.run("exec", "box", "--", "nosuch")).stderr, /not found/);
  const codes = await Promise.all(
    [
      ["box", "nosuch"],
      ["box", "/etc/passwd"],
      ["box", "kill -9 $$"],
      ["--timeout", "1", "box", "sleep", "60"],
      ["gone", "true"],
      ["-w", "/none/such", "box", "true"],
    ].map(async (args) => (await cli.run("exec", ...args)).exitCode),
  );
  assert.deepEqual(codes, [127, 126, 137, 124, 125, 125]);
  const lines = (await cli.run("exec", "--json", "box", "echo out; exit 3")).stdout.split("\n").map((line) => JSON.parse(line) as Partial<ExecutionResult>);
  assert.deepEqual(lines, [{ stdout: "out\n" }, { exit_code: 3 }]);
});

test("stats, logs and sessions show what is and was", async () => {
  assert.match(await cli.done("stats", "box"), /^ID +NAME +CPU +MEMORY +MEMORY % +DISK +PROCESSES\nsb_\w+ +box +\d/);
  const { data } = await cli.json<{ data: { sandbox_name: string; current: { processes: number } }[] }>("stats");
  assert.deepEqual(
    data.map(({ sandbox_name }) => sandbox_name),
    ["box"],
  );
  const table = await cli.done("logs", "box", "--since", "1h");
  assert.match(table, /^TIME +SANDBOX +HOW +STATUS +EXIT +TOOK +COMMAND\n/);
  assert.match(table, / session +completed +3 +\d+ ms +echo out; exit 3$/, "the newest is the last");
  assert.match(await cli.done("logs", "--limit", "1", "-o"), /completed \(3\) +echo out; exit 3\n {4}out$/);
  const { logs } = await cli.json<{ logs: LogEntry[] }>("logs", "box", "-n", "1");
  assert.match(logs[0]?.timestamp ?? "", isoTime);
  assert.match(await cli.done("sessions", "box"), /^ID +STATUS +TERMINAL +ATTACHED +STARTED +COMMAND\nsess_\w+ +ended /);
});

test("the log says what ended a command", async () => {
  const box = (await client.sandboxes.find("box"))[0];
  assert.ok(box);
  const late = await cli.run("exec", "--timeout", "1", "box", "echo shown; sleep 60");
  assert.deepEqual([late.exitCode, late.stdout, late.stderr], [124, "shown", "sandgate: the command was ended after 1 s, its timeout"]);
  const stopped = box.executeAsync("echo begun; sleep 61");
  for await (const { stdout } of stopped) if (stdout?.includes("begun")) break;
  const killed = await box.session({ command: "echo alive; sleep 62" });
  for await (const { bytes } of killed) if (Buffer.from(bytes).includes("alive")) break;
  killed.kill();
  await killed.wait();
  await until("all have ended", async () => (await cli.json<{ logs: LogEntry[] }>("logs", "box")).logs.every(({ status }) => status !== "running"));
  const { logs } = await cli.json<{ logs: LogEntry[] }>("logs", "box");
  const of = (command: string) => {
    const { status, exit_code, error, stdout } = logs.find((entry) => entry.command.endsWith(command)) ?? {};
    return [status, exit_code, error, stdout];
  };
  assert.deepEqual(of("sleep 60"), ["timeout", 124, "the command was ended after 1 s, its timeout", "shown\n"]);
  assert.deepEqual(of("sleep 61"), ["error", -1, "the client went away", "begun\n"]);
  assert.deepEqual(of("sleep 62"), ["completed", 137, "its client asked to end it", "alive\n"]);
  const table = await cli.done("logs", "box");
  assert.match(table, / timeout +124 +\d+ ms +echo shown; sleep 60 {2}\[the command was ended after 1 s, its timeout\]$/m);
  assert.match(table, / error +-1 +\d+ ms +echo begun; sleep 61 {2}\[the client went away\]$/m);
});

test("logs --follow shows what begins, how it ends, and nothing from before the rows that were asked for", async () => {
  const box = (await client.sandboxes.find("box"))[0];
  assert.ok(box);
  for (const word of ["old", "newer", "newest"]) await box.execute(`: ${word}`);
  const running = await box.session({ command: "read line; exit 5", detach_timeout: 600 });
  const following = execa(cli.path, ["logs", "box", "--follow", "-n", "2"], { env: cli.environment, extendEnv: false, cwd: cli.folder, reject: false });
  let shown = "";
  following.stdout.on("data", (text: Buffer) => {
    shown += text.toString();
  });
  try {
    const sees = (pattern: RegExp) => until(`${pattern} in ${JSON.stringify(shown)}`, () => pattern.test(shown), 60_000);
    await sees(/completed \(0\) {2}: newest\n.* running {2}read line; exit 5\n/);
    await box.execute(": fresh");
    await sees(/completed \(0\) {2}: fresh\n/);
    await running.write("\n");
    await running.wait();
    await sees(/completed \(5\) {2}read line; exit 5\n/);
    await box.execute(": last");
    await sees(/: last\n/);
    const commands = shown
      .trim()
      .split("\n")
      .map((line) => line.split("  ").slice(1).join("  "));
    assert.deepEqual(commands, [
      "completed (0)  : newest",
      "running  read line; exit 5",
      "completed (0)  : fresh",
      "completed (5)  read line; exit 5",
      "completed (0)  : last",
    ]);
  } finally {
    following.kill("SIGKILL");
    await following;
  }
  assert.match((await cli.run("logs", "-f", "--until", "1h")).stderr, /omit --until/);
});

test("a command that begins with a dash is a command, be it short, long or in a session", async () => {
  const box = (await client.sandboxes.find("box"))[0];
  assert.ok(box);
  for (const command of ["-c id", "-x", `-e ${"x".repeat(130_900)}`]) {
    const { exit_code, stderr, stdout } = await box.execute(command);
    assert.deepEqual([exit_code, stdout], [127, ""], stderr);
    assert.match(stderr, new RegExp(`${command.slice(0, 2)}: not found`));
  }
  assert.match((await cli.run("exec", "box", "-c id")).stderr, /-c: not found/);
  assert.match((await cli.run("exec", "box", "--", "-c", "id")).stderr, /-c: not found/);
});

test("snapshot, clone, restore and snapshots", async () => {
  await cli.done("exec", "box", "--", "sh", "-c", "mkdir -p /work && echo kept > /work/kept");
  const id = await cli.done("snapshot", "box", "--name", "before");
  const restored = await cli.done("restore", "before", "--name", "after", "-m", "256");
  assert.equal(await cli.done("exec", "after", "--", "cat", "/work/kept"), "kept");
  const { sandbox, snapshot } = await cli.json<{ sandbox: SandboxInfo; snapshot: SnapshotInfo }>("clone", "box", "-n", "copy", "--snapshot-name", "between");
  assert.deepEqual([sandbox.name, snapshot.name], ["copy", "between"]);
  const quick = await cli.json<SnapshotInfo>("snapshot", "copy", "--quick");
  assert.equal(quick.consistency, "crash");
  const table = await cli.done("snapshots");
  assert.match(table, /^ID +NAME +SOURCE +CONSISTENCY +SIZE +EXCLUSIVE +SHARED +CREATED +MEMORY\n/);
  const { memory_reason } = await cli.json<SnapshotInfo>("snapshot", "box", "--name", "more");
  assert.ok(memory_reason);
  assert.match(table, new RegExp(`^${id} +before +box +application +\\d.* just now +no: ${memory_reason}$`, "m"));
  await cli.done("snapshots", "rm", "more");
  assert.equal((await cli.json<PageOf<SnapshotInfo>>("snapshots")).data.length, 3);
  assert.equal(await cli.done("snapshots", "rm", "before"), id);
  assert.equal((await cli.done("snapshots", "-q")).split("\n").length, 2);
  assert.equal(await cli.done("rm", restored, "--snapshot", "last"), restored);
  assert.ok((await cli.json<PageOf<SnapshotInfo>>("snapshots")).data.some(({ name }) => name === "last"));
  assert.equal((await cli.json<{ deleted_count: number }>("snapshots", "rm", "--all", "-f")).deleted_count, 3);
  assert.equal(await cli.done("snapshots"), "ID  NAME  SOURCE  CONSISTENCY  SIZE  EXCLUSIVE  SHARED  CREATED  MEMORY");
});

test("fork prints the id of each copy, and says why without memory only to whom asks for it", async () => {
  const source = await cli.done("create", "-n", "tree");
  const ids = (await cli.done("fork", "tree", "--count", "2", "--name", "leaf")).split("\n");
  assert.deepEqual(
    (await cli.json<PageOf<SandboxInfo>>("ls")).data
      .map(({ id, name }) => `${name} ${id}`)
      .filter((text) => text.startsWith("leaf"))
      .sort(),
    [`leaf-1 ${ids[0]}`, `leaf-2 ${ids[1]}`],
  );
  const { data } = await cli.json<{ data: { sandbox: SandboxInfo }[] }>("fork", "tree", "--cpus", "2", "--no-wait");
  assert.deepEqual(
    data.map(({ sandbox }) => [sandbox.cpu, sandbox.status]),
    [[2, "creating"]],
  );
  const asked = await cli.run("fork", "tree", "--restore-memory", "prefer");
  assert.equal(asked.exitCode, 0);
  const [, why = ""] = asked.stderr.match(/^sandgate: only the files: the snapshot does not include memory: (.+)$/) ?? assert.fail(asked.stderr);
  const wish = await cli.run("snapshot", "tree", "--memory", "require");
  assert.equal(wish.exitCode, 1);
  assert.match(wish.stderr, /^sandgate: memory is required, but .+ \(req_\w+\)$/);
  assert.ok(wish.stderr.includes(why), wish.stderr);
  for (const words of [
    ["snapshot", "tree", "--memory", "yes"],
    ["clone", "tree", "--restore-memory", "yes"],
    ["fork", "tree", "--count", "none"],
  ])
    assert.equal((await cli.run(...words)).exitCode, 2, words.join(" "));
  assert.match((await cli.run("fork", "tree", "--count", "101")).stderr, /count must be between 1 and 100/);
  await cli.done("rm", source, ...ids, ...data.map(({ sandbox }) => sandbox.id), asked.stdout);
});

test("what cannot be done for one is told and done for the others; --force does not mind what is gone", async () => {
  const id = await cli.done("create", "-n", "last");
  const { exitCode, stdout, stderr } = await cli.run("rm", "nobody", "last");
  assert.deepEqual([exitCode, stdout, stderr], [1, id, "sandgate: there is no sandbox nobody"]);
  assert.deepEqual(await cli.run("rm", "-f", "nobody", id), { exitCode: 0, stdout: "", stderr: "" });
});
