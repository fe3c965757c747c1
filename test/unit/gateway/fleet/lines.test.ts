/** How a gateway gets the workers of its machine onto lines, over a real nats-server. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { chmodSync, existsSync, readdirSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { openLines } from "../../../../gateway/fleet/lines.ts";
import { PeerWatch } from "../../../../shared/bus/presence.ts";
import { callSubject, peers as names, processOfWorker } from "../../../../shared/bus/subjects.ts";
import { loadConfig } from "../../../../shared/config.ts";
import { SandgateError } from "../../../../shared/errors.ts";
import { StreamHub } from "../../../../shared/stream/hub.ts";
import { comeTo } from "../../../../shared/stream/line/introduction.ts";
import { Stream } from "../../../../shared/stream/stream.ts";
import { newId } from "../../../../shared/util/ids.ts";
import { run } from "../../../../systemd/base/run.ts";
import { fixture } from "../../../helpers/fixture.ts";
import { temporaryFolder } from "../../../helpers/folder.ts";
import { quiet, startNats } from "../../../helpers/nats.ts";
import { presentWorker } from "../../../helpers/present-worker.ts";
import { drainStream } from "../../../helpers/streams.ts";
import { until } from "../../../helpers/until.ts";

const nats = await fixture(startNats());

interface Asked {
  readonly peer: string;
  readonly socket: string;
  readonly token: string;
}

/** A gateway with a folder for its socket. */
async function openGateway(linesDir: string) {
  const bus = await nats.connect();
  const id = newId("gateway");
  const peers = new PeerWatch(bus, names.gateway(id), quiet);
  const hub = new StreamHub(bus, peers, quiet, 0);
  const close = await openLines({ config: { ...loadConfig({}), linesDir }, id, bus, peers, hub, log: quiet });
  peers.start(() => ({ gateway: true }));
  return { id, peers, hub, [Symbol.asyncDispose]: () => close().finally(() => peers.leave()) };
}

/** A worker that is there. @param answer what it does when it is asked onto a line */
async function openWorker(answer: (asked: Asked, hub: StreamHub) => Promise<unknown>) {
  const bus = await nats.connect();
  const id = newId("worker");
  const peers = new PeerWatch(bus, names.worker(id, newId("worker")), quiet);
  const hub = new StreamHub(bus, peers, quiet, 0);
  const asked: Asked[] = [];
  bus.serve(callSubject("line", processOfWorker(peers.peer)), async (body) => {
    asked.push(body as Asked);
    return answer(body as Asked, hub);
  });
  peers.start(() => ({ worker: presentWorker(id).worker }));
  return { peers, hub, asked, [Symbol.asyncDispose]: async () => peers.leave() };
}

const comes =
  (folder: string) =>
  async ({ peer, socket, token }: Asked, hub: StreamHub): Promise<void> =>
    hub.lines.add(peer, await comeTo(join(folder, socket), token));

async function sendOne(from: StreamHub, to: StreamHub): Promise<unknown> {
  const receiver = Stream.open(to, from.peer, { windowBytes: 1_000 });
  Stream.answer(from, receiver.target).end("sent");
  return (await drainStream(receiver)).summary;
}

test("a worker that comes is asked onto a line with a token of its own, which lets in one", async () => {
  using folder = temporaryFolder("lines");
  await using gateway = await openGateway(folder.path);
  await using worker = await openWorker(comes(folder.path));
  await until("the line", () => gateway.hub.lines.has(worker.peers.peer) && worker.hub.lines.has(gateway.peers.peer));
  assert.equal(await sendOne(worker.hub, gateway.hub), "sent");
  assert.deepEqual([gateway.hub.lines.counts, worker.hub.lines.counts], Array(2).fill({ socket: 1, nats: 0 }));
  assert.deepEqual(readdirSync(folder.path), [`${gateway.id}.sock`]);
  const [{ token = "", socket = "" } = {}] = worker.asked;
  const path = join(folder.path, socket);
  for (const other of [token, "0".repeat(64)]) await assert.rejects(comeTo(path, other), { code: "unavailable" });
  assert.equal(await sendOne(worker.hub, gateway.hub), "sent");
  assert.equal(gateway.hub.lines.counts.socket, 2, "the line stays");
});

test("who only waits at the socket does not keep others out for long", async () => {
  using folder = temporaryFolder("lines");
  await using gateway = await openGateway(folder.path);
  const path = join(folder.path, `${gateway.id}.sock`);
  const strangers = Array.from({ length: 100 }, () => connect(path).on("error", () => {}));
  await Promise.all(strangers.map((stranger) => once(stranger, "connect")));
  await using worker = await openWorker(comes(folder.path));
  await until("the line in spite of them", async () => {
    await sendOne(worker.hub, gateway.hub);
    return gateway.hub.lines.has(worker.peers.peer);
  });
  for (const stranger of strangers) stranger.destroy();
});

test("a worker that cannot come has its streams over NATS, and is asked again when there are further ones", async () => {
  using folder = temporaryFolder("lines");
  await using gateway = await openGateway(folder.path);
  let isThere = false;
  await using worker = await openWorker(async (asked, hub) => {
    if (!isThere) throw new SandgateError("unavailable", "there is no such socket here");
    await comes(folder.path)(asked, hub);
  });
  await until("it was asked", () => worker.asked.length > 0);
  assert.equal(await sendOne(worker.hub, gateway.hub), "sent");
  assert.equal(gateway.hub.lines.counts.nats, 1);
  isThere = true;
  await until("a stream over the socket", async () => {
    assert.equal(await sendOne(worker.hub, gateway.hub), "sent");
    return gateway.hub.lines.counts.socket > 0;
  });
  assert.equal(new Set(worker.asked.map(({ token }) => token)).size, worker.asked.length);
});

test("sockets of gateways that were killed are removed, others stay", async () => {
  using folder = temporaryFolder("lines");
  const [dead, living] = ["gw_dead.sock", "gw_living.sock"].map((name) => join(folder.path, name)) as [string, string];
  await run(["python3", "-c", "import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])", dead]);
  const server = createServer().listen(living);
  await once(server, "listening");
  writeFileSync(join(folder.path, "note"), "");
  await using gateway = await openGateway(folder.path);
  assert.deepEqual(readdirSync(folder.path).sort(), [`${gateway.id}.sock`, "gw_living.sock", "note"].sort());
  server.close();
});

test("a folder that everybody can enter is not used", async () => {
  using folder = temporaryFolder("lines");
  chmodSync(folder.path, 0o711);
  await using gateway = await openGateway(folder.path);
  await using worker = await openWorker(comes(folder.path));
  await until("they know each other", () => worker.peers.has(gateway.peers.peer) && gateway.peers.has(worker.peers.peer));
  assert.equal(await sendOne(worker.hub, gateway.hub), "sent");
  assert.deepEqual([worker.asked, existsSync(join(folder.path, `${gateway.id}.sock`))], [[], false]);
});
