/** Sessions that outlive their sockets: detach, attach again, one writer and many readers. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { closeReasons } from "../../../shared/stream/session/protocol.ts";
import { Api } from "../../helpers/api.ts";
import { fixture } from "../../helpers/fixture.ts";
import { Mark, Sandboxes } from "../../helpers/sandboxes.ts";
import { attach, connect, start } from "../../helpers/sessions.ts";
import { sharedStack } from "../../helpers/shared.ts";
import { until } from "../../helpers/until.ts";

const api = new Api(sharedStack());
const sandboxes = fixture(new Sandboxes(api));

const id = await sandboxes.make();

interface Listed {
  readonly session_id: string;
  readonly command: string | null;
  readonly tty: boolean;
  readonly created_at: string;
  readonly attached: number;
  readonly status: string;
}

async function listed(sessionId: string): Promise<Listed | undefined> {
  const { status, body } = await api.call<{ data: Listed[] }>("GET", `/v1/sandboxes/${id}/sessions`);
  assert.equal(status, 200);
  return body.data.find(({ session_id }) => session_id === sessionId);
}

test("a session goes on when its client detaches, and another one gets what came meanwhile", async () => {
  const first = await start(api, id, { command: "read a; seq 1000; read b; echo last $a $b" });
  first.send({ type: "detach" });
  assert.equal((await first.closed()).code, closeReasons.done.code);
  await until("nobody is attached", async () => (await listed(first.id))?.attached === 0);
  const second = await attach(api, id, { session_id: first.id, since: first.next });
  assert.deepEqual([second.started?.writer, second.started?.offset], [true, 0]);
  second.type("x\n");
  await second.sees("\n1000\n");
  second.cut();
  await until("nobody is attached", async () => (await listed(first.id))?.attached === 0);
  const third = await attach(api, id, { session_id: first.id, since: 100 });
  third.type("y\n");
  await third.closed();
  const whole = `${Array.from({ length: 1_000 }, (_, index) => `${index + 1}\n`).join("")}last x y\n`;
  assert.equal(third.text[1], whole.slice(100));
  assert.deepEqual(third.exit, { type: "exit", exit_code: 0 });
  assert.deepEqual([second.holes, third.holes], [[], []]);
});

test("how much input was accepted is told, so that a client can send the rest again", async () => {
  const first = await start(api, id, { command: "cat" });
  first.type("12345");
  await first.sees("12345");
  first.cut();
  const second = await attach(api, id, { session_id: first.id, since: 0, takeover: true });
  assert.equal(second.started?.input_offset, 5);
  second.send({ type: "kill" });
  await second.closed();
});

test("what is no longer kept is told as a gap", async () => {
  const first = await start(api, id, { command: "read go; head -c 3000000 /dev/zero; echo done; read end" });
  first.type("\n");
  first.send({ type: "detach" });
  await first.closed();
  const second = await until("the output has passed", async () => {
    const client = await attach(api, id, { session_id: first.id, since: 0 });
    if ((client.started?.offset ?? 0) === 3_000_005 - 1024 * 1024) return client;
    client.send({ type: "detach" });
    await client.closed();
    return undefined;
  });
  await second.sees("done\n");
  assert.deepEqual(second.gap, { type: "gap", from: 0, to: 3_000_005 - 1024 * 1024 });
  assert.equal(second.text[1].length, 1024 * 1024);
  second.type("\n");
  await second.closed();
});

test("one client writes, the others read the same", async () => {
  const writer = await start(api, id, { command: "cat" });
  const readers = await Promise.all([1, 2, 3].map(() => attach(api, id, { session_id: writer.id, since: 0 })));
  assert.deepEqual(
    readers.map((reader) => reader.started?.writer),
    [false, false, false],
  );
  assert.equal((await listed(writer.id))?.attached, 4);
  writer.type("to all\n");
  await Promise.all(readers.map((reader) => reader.sees("to all\n")));
  writer.send({ type: "stdin_close" });
  for (const client of [writer, ...readers]) {
    assert.equal((await client.closed()).code, 1000);
    assert.deepEqual(client.exit, { type: "exit", exit_code: 0 });
  }
});

test("those who watch are told the size of the terminal, and of every change of it", async () => {
  const writer = await start(api, id, { command: "cat", tty: true, cols: 100, rows: 30 });
  const { cols, rows } = writer.started ?? {};
  assert.deepEqual([cols, rows], [100, 30]);
  const reader = await attach(api, id, { session_id: writer.id, read_only: true });
  assert.deepEqual([reader.started?.cols, reader.started?.rows], [100, 30]);
  writer.send({ type: "resize", cols: 90, rows: 20 });
  await until("the reader knows", () => reader.messages.some((message) => message.type === "resize"));
  assert.deepEqual(reader.messages.at(-1), { type: "resize", cols: 90, rows: 20 });
  assert.deepEqual(
    writer.messages.map(({ type }) => type),
    ["started"],
  );
  const late = await attach(api, id, { session_id: writer.id, read_only: true });
  assert.deepEqual([late.started?.cols, late.started?.rows], [90, 20]);
  writer.send({ type: "kill" });
  await Promise.all([writer, reader, late].map((client) => client.closed()));
  const pipes = await start(api, id, { command: "cat" });
  assert.equal("cols" in (pipes.started ?? {}), false, "what has no terminal has no size");
  pipes.send({ type: "kill" });
  await pipes.closed();
});

test("a client that may not write is refused when it does, and the session goes on", async () => {
  const writer = await start(api, id, { command: "cat" });
  const forbidden = [{ type: "resize", cols: 10, rows: 10 }, { type: "signal", signal: "TERM" }, { type: "stdin_close" }, { type: "kill" }];
  for (const message of forbidden) {
    const reader = await attach(api, id, { session_id: writer.id });
    reader.send(message);
    assert.equal((await reader.closed()).code, 4403);
    assert.equal(reader.error?.code, "forbidden");
  }
  const reader = await attach(api, id, { session_id: writer.id, read_only: true });
  reader.type("no");
  assert.equal((await reader.closed()).code, 4403);
  writer.type("yes\n");
  writer.send({ type: "stdin_close" });
  await writer.closed();
  assert.equal(writer.text[1], "yes\n");
});

test("a takeover moves the pen, and only a takeover does", async () => {
  const first = await start(api, id, { command: "cat" });
  const second = await attach(api, id, { session_id: first.id, takeover: true });
  assert.equal(second.started?.writer, true);
  assert.equal((await first.closed()).code, 4001);
  second.type("mine\n");
  await second.sees("mine\n");
  const third = await attach(api, id, { session_id: first.id, since: 0 });
  assert.equal(third.started?.writer, false);
  second.send({ type: "detach" });
  await second.closed();
  const fourth = await attach(api, id, { session_id: first.id });
  assert.equal(fourth.started?.writer, true, "the pen is free when its holder has gone");
  fourth.send({ type: "kill" });
  await third.closed();
  assert.equal(third.exit?.exit_code, 137);
});

test("a client that comes after the end gets the last output and the exit code", async () => {
  const first = await start(api, id, { command: "read go; seq 5; exit 3" });
  first.type("\n");
  first.cut();
  await until("its end", async () => (await listed(first.id))?.status === "ended");
  for (const _ of [1, 2]) {
    const late = await attach(api, id, { session_id: first.id, since: 0 });
    assert.equal((await late.closed()).code, 1000);
    assert.deepEqual([late.text[1], late.exit?.exit_code, late.started?.writer], ["1\n2\n3\n4\n5\n", 3, false]);
  }
});

test("a session that nobody comes back to is ended with everything in it", async () => {
  const mark = new Mark();
  const client = await start(api, id, { command: "setsid sleep 600 & sleep 600", env: mark.env, detach_timeout: 1 });
  await until("both run", () => mark.living().length >= 3);
  client.cut();
  await mark.gone();
  await until("it is forgotten", async () => (await listed(client.id)) === undefined);
  const late = await connect(api, id);
  late.send({ type: "attach", session_id: client.id });
  assert.equal((await late.closed()).code, 4404);
  const { body } = await api.call<{ logs: Record<string, unknown>[] }>("GET", `/v1/sandboxes/logs?sandbox_id=${id}`);
  const entry = body.logs.find(({ execution_id }) => execution_id === client.id);
  assert.deepEqual([entry?.exit_code, entry?.error], [137, "nobody was attached for 1 s"]);
});

test("the list tells what there is to attach to", async () => {
  const client = await start(api, id, { cols: 10, rows: 10 });
  const entry = await listed(client.id);
  assert.match(entry?.created_at ?? "", /^\d{4}-.*Z$/);
  assert.deepEqual({ ...entry, created_at: "" }, { session_id: client.id, command: null, tty: true, created_at: "", attached: 1, status: "running" });
  client.send({ type: "kill" });
  await client.closed();
});

test("an offset that there is not yet, and a session of another sandbox, cannot be attached to", async () => {
  const other = await sandboxes.make();
  const client = await start(api, id, { command: "cat" });
  const ahead = await connect(api, id);
  ahead.send({ type: "attach", session_id: client.id, since: 1 });
  assert.equal((await ahead.closed()).code, 4400);
  const elsewhere = await connect(api, other);
  elsewhere.send({ type: "attach", session_id: client.id });
  assert.equal((await elsewhere.closed()).code, 4404);
  client.send({ type: "kill" });
  await client.closed();
});

test("a sandbox that is deleted ends its sessions with an error", async () => {
  const other = await sandboxes.make();
  const client = await start(api, other, {});
  await api.delete(other);
  assert.equal((await client.closed()).code, closeReasons.sessionLost.code);
  assert.deepEqual([client.error?.code, client.error?.message, client.exit], ["not_found", "the sandbox was deleted", undefined]);
});

test("a snapshot stands a session still and sets it going again", async () => {
  const client = await start(api, id, { command: "i=0; while :; do i=$((i+1)); echo $i; sleep 0.02; done", tty: true });
  await client.sees("\n5\r\n");
  const { status, body } = await api.call<{ id: string }>("POST", `/v1/sandboxes/${id}/snapshot`, {});
  assert.equal(status, 201);
  const seen = client.text[1].length;
  await until("it counts on", () => client.text[1].length > seen + 20);
  const numbers = client.text[1].split("\r\n").slice(0, -1).map(Number);
  assert.deepEqual(
    numbers,
    Array.from({ length: numbers.length }, (_, index) => index + 1),
  );
  client.send({ type: "kill" });
  await client.closed();
  await api.call("DELETE", `/v1/snapshots/${body.id}`);
});
