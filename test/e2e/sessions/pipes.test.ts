/** Live sessions without a terminal: three pipes. */
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { test } from "node:test";
import { Api } from "../../helpers/api.ts";
import { fixture } from "../../helpers/fixture.ts";
import { Mark, Sandboxes } from "../../helpers/sandboxes.ts";
import { connect, start } from "../../helpers/sessions.ts";
import { sharedStack } from "../../helpers/shared.ts";
import { until } from "../../helpers/until.ts";

const api = new Api(sharedStack());
const sandboxes = fixture(new Sandboxes(api));

const id = await sandboxes.make({ env_vars: { OF_SANDBOX: "one" } });

test("standard output and standard error come apart, with offsets of one count", async () => {
  const client = await start(api, id, { command: "printf out; printf err >&2; exit 5" });
  assert.deepEqual(await client.closed(), { code: 1000, reason: "the session has ended" });
  assert.deepEqual(client.text, { 1: "out", 2: "err" });
  assert.deepEqual([client.started?.tty, client.next, client.holes], [false, 6, []]);
  assert.deepEqual(client.messages.at(-1), { type: "exit", exit_code: 5 });
});

test("input goes in until its end", async () => {
  const client = await start(api, id, { command: "tr a-z A-Z; echo done" });
  client.type("hello ");
  client.type("world\n");
  client.send({ type: "stdin_close" });
  await client.closed();
  assert.equal(client.text[1], "HELLO WORLD\ndone\n");
});

test("input that is sent before the command runs is not lost", async () => {
  const client = await connect(api, id);
  client.send({ type: "start", command: "cat" });
  client.type("early");
  client.send({ type: "stdin_close" });
  await client.closed();
  assert.equal(client.text[1], "early");
});

test("environment and working directory are as asked", async () => {
  const client = await start(api, id, { command: 'echo "$OF_SANDBOX $OWN $PWD"', env: { OWN: "two" }, working_dir: "/tmp" });
  await client.closed();
  assert.equal(client.text[1], "one two /tmp\n");
});

test("a working directory that is not there is an error before anything runs", async () => {
  const client = await connect(api, id);
  client.send({ type: "start", command: "true", working_dir: "/nowhere" });
  assert.equal((await client.closed()).code, 4422);
  assert.deepEqual([client.error?.code, client.error?.reason], ["unprocessable", "no_such_working_dir"]);
  assert.match(client.error?.message ?? "", /working_dir does not exist/);
});

test("ten megabytes through a command and back are the same", async () => {
  const bytes = 10 * 1024 * 1024;
  const hash = createHash("sha256");
  const client = await start(api, id, { command: "cat" }, (chunk) => hash.update(chunk));
  const sent = randomBytes(bytes);
  for (let at = 0; at < bytes; at += 65_000) {
    client.type(sent.subarray(at, at + 65_000));
    await until("room for more input", () => at + 65_000 - lastTaken() < 256 * 1024);
  }
  function lastTaken(): number {
    const last = client.messages.findLast((message) => message.type === "input_ack");
    return last?.type === "input_ack" ? last.offset : 0;
  }
  client.send({ type: "stdin_close" });
  await client.closed();
  assert.equal(hash.digest("hex"), createHash("sha256").update(sent).digest("hex"));
  assert.deepEqual(client.holes, []);
});

test("a signal reaches the command and its children", async () => {
  const client = await start(api, id, { command: "trap 'echo caught; exit 9' INT; echo ready; sleep 600 & wait" });
  await client.sees("ready");
  client.send({ type: "signal", signal: "sigint" });
  await client.closed();
  assert.equal(client.text[1], "ready\ncaught\n");
  assert.equal(client.exit?.exit_code, 9);
  await api.execute(id, "pkill -KILL sleep");
});

test("a command that takes no input any more does not hold up the end", async () => {
  const client = await start(api, id, { command: "exec 0<&-; sleep 0.5; echo over" });
  client.type(Buffer.alloc(300_000));
  await client.closed();
  assert.equal(client.text[1], "over\n");
});

test("a command that the kernel ends for its memory is told from one that was killed otherwise", async () => {
  const small = await sandboxes.make({ resources: { memory: 128 } });
  const out = await start(api, small, { command: "exec head -c 1G /dev/zero | tail", tty: false });
  await out.closed();
  assert.equal(out.exit?.exit_code, 137);
  assert.match(out.exit?.reason ?? "", /out of memory/);
  const killed = await start(api, small, { command: "kill -9 $$", tty: false });
  await killed.closed();
  assert.deepEqual([killed.exit?.exit_code, killed.exit?.reason], [137, undefined]);
});

test("kill ends the whole tree", async () => {
  const mark = new Mark();
  const client = await start(api, id, { command: "setsid sleep 600 & sleep 600", env: mark.env });
  await until("both run", () => mark.living().length >= 3);
  client.send({ type: "kill" });
  await client.closed();
  assert.deepEqual(client.exit, { type: "exit", exit_code: 137, signal: "SIGKILL" });
  await mark.gone();
});

test("a session is in the log of what ran, with the beginning of its output", async () => {
  const client = await start(api, id, { command: "seq 10000; echo wrong >&2; exit 4" });
  await client.closed();
  const entry = await until("its entry", async () => {
    const { body } = await api.call<{ logs: Record<string, unknown>[] }>("GET", `/v1/sandboxes/logs?sandbox_id=${id}`);
    return body.logs.find(({ execution_id, status }) => execution_id === client.id && status === "completed");
  });
  assert.deepEqual([entry.source, entry.exit_code, entry.stderr, entry.command], ["session", 4, "wrong\n", "seq 10000; echo wrong >&2; exit 4"]);
  assert.equal((entry.stdout as string).length, 4_096);
  assert.deepEqual([entry.stdout_truncated, entry.stderr_truncated], [true, undefined]);
});
