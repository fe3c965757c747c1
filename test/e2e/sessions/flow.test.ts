/** Live sessions whose clients or commands are slow: nothing grows, nobody else waits. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { encodeInput } from "../../../shared/stream/session/frames.ts";
import { closeReasons, inputBytesMax, windowBytes } from "../../../shared/stream/session/protocol.ts";
import { Api } from "../../helpers/api.ts";
import { fixture } from "../../helpers/fixture.ts";
import { residentBytes } from "../../helpers/prepare.ts";
import { attach, connect, type SessionClient, start } from "../../helpers/sessions.ts";
import { startStack } from "../../helpers/stack.ts";
import { pythonCommand } from "../../helpers/trees.ts";
import { until } from "../../helpers/until.ts";

const MiB = 1024 * 1024;
/** A pipe holds so much that its reader has not taken. */
const pipeBytes = 64 * 1024;

const stack = await fixture(startStack({ name: "session-flow" }));
const api = new Api(stack);
const id = await api.create();

/** Kills sessions. The exit code comes after all output, so it must be taken. */
async function end(...clients: SessionClient[]): Promise<void> {
  for (const client of clients) {
    client.send({ type: "kill" });
    client.isAcking = true;
    client.acknowledge();
    await client.closed();
  }
}

/** A client that acknowledges nothing, at the end of its window. */
async function silent(command: string): Promise<SessionClient> {
  const client = await connect(api, id);
  client.isAcking = false;
  client.send({ type: "start", command });
  await client.ready();
  await until("a full window", () => client.next >= windowBytes);
  return client;
}

test("a client that does not acknowledge gets one window and holds the command back; nothing is lost", async () => {
  const client = await silent("seq 1 400000; touch /tmp/written");
  await sleep(300);
  assert.equal(client.next, windowBytes);
  assert.notEqual((await api.execute(id, "test -e /tmp/written")).exit_code, 0, "the command waits for its reader");
  client.isAcking = true;
  client.acknowledge();
  await client.closed();
  assert.equal(client.text[1], Array.from({ length: 400_000 }, (_, index) => `${index + 1}\n`).join(""));
  assert.deepEqual(client.holes, []);
});

test("the same holds in a terminal", async () => {
  const client = await connect(api, id);
  client.isAcking = false;
  client.send({ type: "start", tty: true, command: "stty -opost; seq 1 200000" });
  await until("a full window", () => client.next === windowBytes);
  client.isAcking = true;
  client.acknowledge();
  await client.closed();
  assert.equal(client.text[1], Array.from({ length: 200_000 }, (_, index) => `${index + 1}\n`).join(""));
});

test("a slow second reader holds up nobody and is told what it has missed", async () => {
  const writer = await start(api, id, { command: "read go; head -c 4000000 /dev/zero; echo done" });
  const slow = await connect(api, id);
  slow.isAcking = false;
  slow.send({ type: "attach", session_id: writer.id });
  await slow.ready();
  writer.type("\n");
  await writer.closed();
  assert.equal(writer.text[1].length, 4_000_005);
  assert.equal(slow.next, windowBytes);
  slow.isAcking = true;
  slow.acknowledge();
  await slow.closed();
  const { from = 0, to = 0 } = slow.gap ?? {};
  assert.equal(from, windowBytes);
  assert.equal(slow.text[1].length, 4_000_005 - (to - from));
  assert.ok(to - from > MiB && slow.text[1].endsWith("done\n"));
  assert.equal(slow.exit?.exit_code, 0);
  assert.deepEqual(slow.holes, []);
});

test("floods that nobody takes leave memory flat and others quick", async () => {
  const floods = await Promise.all([1, 2, 3, 4].map(() => silent("yes")));
  const echo = await start(api, id, { command: "cat" });
  const before = [stack.worker.pid, stack.gateway.pid].map(residentBytes);
  for (let round = 0; round < 50; round++) {
    echo.type(`${round}\n`);
    await echo.sees(`${round}\n`);
  }
  const grown = [stack.worker.pid, stack.gateway.pid].map((pid, index) => residentBytes(pid) - (before[index] as number));
  for (const bytes of grown) assert.ok(bytes < 32 * MiB, `memory has grown by ${bytes}`);
  for (const flood of floods) assert.equal(flood.next, windowBytes);
  await end(echo, ...floods);
});

test("a flood with nobody attached is read and kept no further than the ring", async () => {
  const flood = await start(api, id, { command: "yes" });
  flood.send({ type: "detach" });
  await flood.closed();
  const before = residentBytes(stack.worker.pid);
  await sleep(2_000);
  const grown = residentBytes(stack.worker.pid) - before;
  assert.ok(grown < 64 * MiB, `memory has grown by ${grown}`);
  const back = await attach(api, id, { session_id: flood.id, since: 0 });
  assert.ok((back.gap?.to ?? 0) > 0);
  await end(back);
});

for (const [name, message] of [
  ["acknowledgements", JSON.stringify({ type: "ack", offset: 0 })],
  ["signals", JSON.stringify({ type: "signal", signal: "WINCH" })],
  ["sizes", JSON.stringify({ type: "resize", cols: 80, rows: 24 })],
  ["keystrokes", encodeInput(Buffer.from("x"))],
] satisfies [string, string | Uint8Array][]) {
  test(`a flood of ${name} is cut off, leaves memory flat and other sessions alone`, async () => {
    const other = await start(api, id, { command: "stty raw -echo; cat", tty: true });
    const flood = await start(api, id, { command: "stty raw -echo; cat > /dev/null", tty: true });
    const before = residentBytes(stack.gateway.pid);
    for (let sent = 0; !flood.close && sent < 1_000_000; sent += 1_000) {
      for (let n = 0; n < 1_000; n++) flood.ws.send(message);
      await sleep(1);
    }
    assert.equal((await flood.closed()).code, 4429);
    assert.match(flood.error?.message ?? "", /messages came in a second/);
    other.type("echo");
    await other.sees("echo");
    assert.ok(residentBytes(stack.gateway.pid) - before < 100 * MiB);
    // What was spent counts for a second, for all of the key's sockets.
    await sleep(1_000);
    const back = await attach(api, id, { session_id: flood.id });
    await end(other, back);
  });
}

test("a client may acknowledge every piece of output, however small and many they are", async () => {
  const pieces: number[] = [];
  const command = pythonCommand("import os, time\nwhile True: os.write(1, b'x'), time.sleep(0.0003)");
  const client = await start(api, id, { command }, (bytes) => pieces.push(bytes.length));
  client.isAcking = false;
  await until("many small pieces", () => pieces.length >= 5_000);
  let offset = 0;
  for (const length of pieces.slice()) {
    offset += length;
    client.send({ type: "ack", offset });
  }
  const seen = pieces.length;
  await until("more of them", () => pieces.length > seen + 100);
  assert.equal(client.close, undefined);
  await end(client);
});

test("a client that goes on sending what the command does not take is cut off, and can come back", async () => {
  const client = await start(api, id, { command: "sleep 600" });
  let sent = 0;
  const typeTo = (bytes: number): void => {
    for (; sent <= bytes; sent += 64_000) client.type(Buffer.alloc(64_000));
  };
  // What is on its way when it is cut off is not accepted, and how much that is depends on the machine.
  typeTo(MiB - 256 * 1024);
  await until("the first of it is accepted", async () => {
    const reader = await attach(api, id, { session_id: client.id, read_only: true });
    reader.cut();
    return reader.started?.input_offset === sent;
  });
  typeTo(inputBytesMax + 128 * 1024);
  assert.equal((await client.closed()).code, closeReasons.inputOverflow.code);
  assert.equal(client.error?.code, "rate_limited");
  const back = await attach(api, id, { session_id: client.id });
  const accepted = back.started?.input_offset ?? 0;
  assert.ok(accepted > MiB - 256 * 1024 && accepted <= inputBytesMax + pipeBytes, `${accepted}`);
  await end(back);
});

test("a socket that takes nothing at all is closed once more waits for it than it may leave unacknowledged", async () => {
  const client = await connect(api, id);
  client.isAcking = false;
  client.send({ type: "start", command: "yes" });
  await client.ready();
  // The client's own socket is not read any more; what is acknowledged ahead of that lets ever more be sent.
  client.ws.pause();
  for (let offset = windowBytes; !client.close && offset < 64 * MiB; offset += 32 * 1024) {
    client.send({ type: "ack", offset: Math.max(0, offset - windowBytes) });
    await sleep(1);
  }
  const before = residentBytes(stack.gateway.pid);
  await sleep(500);
  assert.ok(residentBytes(stack.gateway.pid) - before < 16 * MiB);
  client.cut();
  const back = await attach(api, id, { session_id: client.id });
  await end(back);
});
