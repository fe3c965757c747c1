/** Streams between a gateway and a worker of one machine: over a Unix socket, and over NATS where there is none, or none any more. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { readdirSync, statSync } from "node:fs";
import { connect as connectSocket } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { peers, subjects } from "../../../shared/bus/subjects.ts";
import { asAccount } from "../../../systemd/base/as-account.ts";
import { succeeds } from "../../../systemd/base/run.ts";
import { Api } from "../../helpers/api.ts";
import { connectBus } from "../../helpers/bus.ts";
import { fixture } from "../../helpers/fixture.ts";
import { temporaryFolder } from "../../helpers/folder.ts";
import { LineProxy } from "../../helpers/lines.ts";
import { testPort } from "../../helpers/ports.ts";
import { withSettings } from "../../helpers/resilience.ts";
import { startStack } from "../../helpers/stack.ts";
import { loseWorkerInStream, transfersOf, untilInUse, type Ways, waysOf } from "../../helpers/transfers.ts";
import { until } from "../../helpers/until.ts";

const MiB = 1024 * 1024;
const metricsPort = await testPort();
const stack = await fixture(startStack({ name: "socket", settings: { SANDGATE_METRICS_PORT: String(metricsPort) } }));
const api = new Api(stack);
const id = await api.create();
const { lines } = stack.instance.paths;

/** How many streams went each way. */
const ways = (): Promise<Ways> => waysOf(metricsPort);
const transfers = transfersOf(api, id);

const socketInUse = (): Promise<void> => untilInUse("socket", api, id, metricsPort);

test("streams of all kinds go over the socket, and nothing of them over NATS", async () => {
  await socketInUse();
  await using bus = await connectBus(stack.natsUrl, "listener");
  const heard: string[] = [];
  for (const peer of [peers.gateway("*"), peers.worker("*", "*")]) bus.subscribe(subjects.stream(peer, "*"), ({ subject }) => heard.push(subject));
  await bus.connection.flush();
  const before = await ways();
  for (const transfer of Object.values(transfers)) await transfer();
  const after = await ways();
  assert.ok(after.socket >= before.socket + Object.keys(transfers).length);
  assert.equal(after.nats, before.nats);
  assert.deepEqual(heard, []);
});

test("only the gateway and the worker reach the socket, and nobody is let in without the token of a call", async () => {
  const { accounts } = stack.instance;
  const { mode, uid, gid } = statSync(lines);
  assert.deepEqual([mode & 0o777, uid, gid], [0o710, accounts.gateway.uid, accounts.worker.gid]);
  const [socket = ""] = readdirSync(lines).map((name) => join(lines, name));
  const isSeenBy = (part: keyof typeof accounts): Promise<boolean> => succeeds(asAccount(accounts[part], ["test", "-S", socket]), { cwd: "/" });
  assert.deepEqual([await isSeenBy("worker"), await isSeenBy("gateway")], [true, true]);
  if (accounts.nats.uid !== accounts.worker.uid) assert.equal(await isSeenBy("nats"), false);
  const before = await ways();
  for (const words of ["0".repeat(64), "GET / HTTP/1.1\r\n\r\n".padEnd(64), randomBytes(4_096)]) {
    const stranger = connectSocket(socket);
    stranger.on("error", () => {});
    await once(stranger, "connect");
    stranger.write(words);
    const answers = await stranger.toArray().catch(() => []);
    assert.deepEqual(answers, []);
  }
  await api.execute(id, "true");
  assert.deepEqual(await ways(), { ...before, socket: before.socket + 1 });
});

test("a worker that is killed in mid-stream ends the stream with an error, and comes back to the socket", async () => {
  await socketInUse();
  await loseWorkerInStream(stack, api, id);
  await socketInUse();
});

test("a worker that does not reach the socket, as on another machine, has its streams over NATS", async () => {
  await stack.worker.kill9();
  const elsewhere = withSettings(stack.worker, { SANDGATE_LINES_DIR: "" });
  await elsewhere.start();
  try {
    await until("it is there", async () => (await api.call("POST", `/v1/sandboxes/${id}/execute`, { command: "true" })).status === 200);
    const before = await ways();
    for (const transfer of Object.values(transfers)) await transfer();
    const after = await ways();
    assert.equal(after.socket, before.socket);
    assert.ok(after.nats > before.nats);
  } finally {
    await elsewhere.kill9();
  }
  await stack.worker.start();
  await stack.ready();
});

test("a line that is lost with all that was on it loses and doubles no byte", async (t) => {
  await stack.worker.kill9();
  // In the way of the worker, which finds it under the name of the gateway's socket.
  using folder = temporaryFolder("front", 0o755);
  const [name = ""] = readdirSync(lines);
  using proxy = await LineProxy.listen(join(folder.path, name), join(lines, name));
  const worker = withSettings(stack.worker, { SANDGATE_LINES_DIR: folder.path });
  await worker.start();
  try {
    await until("it is there", async () => (await api.call("POST", `/v1/sandboxes/${id}/execute`, { command: "true" })).status === 200);
    for (const [what, transfer] of Object.entries(transfers)) {
      await t.test(what, async () => {
        await socketInUse();
        assert.ok(proxy.isInUse);
        const before = await ways();
        const held = proxy.holdAfter(2 * MiB);
        const transferred = transfer();
        await Promise.race([held, transferred]);
        proxy.cut();
        await transferred;
        assert.ok((await ways()).nats > before.nats, "it went on over NATS");
      });
    }
  } finally {
    await worker.kill9();
  }
  await stack.worker.start();
  await stack.ready();
});
