/** How a gateway gets workers onto lines, over a real nats-server. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { chmodSync, existsSync, readdirSync, writeFileSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { openLines } from "../../../../gateway/fleet/lines.ts";
import type { Request } from "../../../../shared/bus/contract/contract.ts";
import { PeerWatch } from "../../../../shared/bus/presence.ts";
import { callSubject, peers as names, processOfWorker } from "../../../../shared/bus/subjects.ts";
import { type Config, loadConfig } from "../../../../shared/config.ts";
import { StreamHub } from "../../../../shared/stream/hub.ts";
import { comeTo } from "../../../../shared/stream/line/introduction.ts";
import type { LineAddress } from "../../../../shared/stream/line/tls.ts";
import { Stream } from "../../../../shared/stream/stream.ts";
import { newId } from "../../../../shared/util/ids.ts";
import { run } from "../../../../systemd/base/run.ts";
import { fixture } from "../../../helpers/fixture.ts";
import { temporaryFolder } from "../../../helpers/folder.ts";
import { quiet, startNats } from "../../../helpers/nats.ts";
import { testPort } from "../../../helpers/ports.ts";
import { presentWorker } from "../../../helpers/present-worker.ts";
import { drainStream } from "../../../helpers/streams.ts";
import { until } from "../../../helpers/until.ts";

const nats = await fixture(startNats());

type Asked = Request<"line">;

/** A gateway. @param settings where it listens */
async function openGateway(settings: Partial<Pick<Config, "linesDir" | "linesHost" | "linesPort">>) {
  const bus = await nats.connect();
  const id = newId("gateway");
  const peers = new PeerWatch(bus, names.gateway(id), quiet);
  const hub = new StreamHub(bus, peers, quiet, 0);
  const close = await openLines({ config: { ...loadConfig({}), ...settings }, id, bus, peers, hub, log: quiet });
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

/** How a gateway and a worker get a line. */
interface Way {
  readonly settings: Parameters<typeof openGateway>[0];
  /** Where the worker is to come. */
  place(asked: Asked): string | LineAddress;
}

const ways: Readonly<Record<"socket" | "tls", (folder: string) => Promise<Way>>> = {
  socket: async (folder) => ({ settings: { linesDir: folder }, place: ({ socket = "" }) => join(folder, socket) }),
  tls: async () => ({
    settings: { linesHost: "127.0.0.1", linesPort: await testPort() },
    place: ({ address }) => address ?? assert.fail("it was told no address"),
  }),
};

const comes =
  ({ place }: Way) =>
  async (asked: Asked, hub: StreamHub): Promise<void> =>
    hub.lines.add(asked.peer, await comeTo(place(asked), asked.token));

const connectTo = (place: string | LineAddress): Socket => connect(typeof place === "string" ? { path: place } : place).on("error", () => {});
const none = { socket: 0, tls: 0, nats: 0 };

async function sendOne(from: StreamHub, to: StreamHub): Promise<unknown> {
  const receiver = Stream.open(to, from.peer, { windowBytes: 1_000 });
  Stream.answer(from, receiver.target).end("sent");
  return (await drainStream(receiver)).summary;
}

for (const name of ["socket", "tls"] as const) {
  test(`${name}: a worker that comes is asked onto a line with a token of its own, which lets in one`, async () => {
    using folder = temporaryFolder("lines");
    const way = await ways[name](folder.path);
    await using gateway = await openGateway(way.settings);
    await using worker = await openWorker(comes(way));
    await until("the line", () => gateway.hub.lines.has(worker.peers.peer) && worker.hub.lines.has(gateway.peers.peer));
    assert.equal(await sendOne(worker.hub, gateway.hub), "sent");
    assert.deepEqual([gateway.hub.lines.counts, worker.hub.lines.counts], Array(2).fill({ ...none, [name]: 1 }));
    const [asked] = worker.asked;
    assert.ok(asked);
    for (const token of [asked.token, "0".repeat(64)]) await assert.rejects(comeTo(way.place(asked), token), { code: "unavailable" });
    assert.equal(await sendOne(worker.hub, gateway.hub), "sent");
    assert.equal(gateway.hub.lines.counts[name], 2, "the line stays");
  });

  test(`${name}: who only waits there does not keep others out for long`, async () => {
    using folder = temporaryFolder("lines");
    const way = await ways[name](folder.path);
    await using gateway = await openGateway(way.settings);
    const { linesHost: host = "", linesPort: port = 0 } = way.settings;
    const place = way.place({ peer: "", token: "", socket: `${gateway.id}.sock`, address: { host, port } });
    const strangers = Array.from({ length: 100 }, () => connectTo(place));
    await Promise.all(strangers.map((stranger) => once(stranger, "connect")));
    await until("those beyond the bound are sent away", () => strangers.filter((stranger) => stranger.resume().destroyed).length >= 36);
    await using worker = await openWorker(comes(way));
    await until("the line in spite of them", async () => {
      await sendOne(worker.hub, gateway.hub);
      return gateway.hub.lines.has(worker.peers.peer);
    });
    for (const stranger of strangers) stranger.destroy();
  });

  test(`${name}: a worker that cannot come has its streams over NATS, and is asked again when there are further ones`, async () => {
    using folder = temporaryFolder("lines");
    const way = await ways[name](folder.path);
    const nowhere: Way = { ...way, place: (asked) => (name === "tls" ? { host: "127.0.0.1", port: 1 } : `${way.place(asked)}.not`) };
    await using gateway = await openGateway(way.settings);
    let isThere = false;
    await using worker = await openWorker((asked, hub) => comes(isThere ? way : nowhere)(asked, hub));
    await until("it was asked", () => worker.asked.length > 0);
    assert.equal(await sendOne(worker.hub, gateway.hub), "sent");
    assert.equal(gateway.hub.lines.counts.nats, 1);
    isThere = true;
    await until("a stream over the line", async () => {
      assert.equal(await sendOne(worker.hub, gateway.hub), "sent");
      return gateway.hub.lines.counts[name] > 0;
    });
    assert.equal(new Set(worker.asked.map(({ token }) => token)).size, worker.asked.length);
  });
}

test("sockets of gateways that were killed are removed, others stay", async () => {
  using folder = temporaryFolder("lines");
  const [dead, living] = ["gw_dead.sock", "gw_living.sock"].map((name) => join(folder.path, name)) as [string, string];
  await run(["python3", "-c", "import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])", dead]);
  const server = createServer().listen(living);
  await once(server, "listening");
  writeFileSync(join(folder.path, "note"), "");
  await using gateway = await openGateway({ linesDir: folder.path });
  assert.deepEqual(readdirSync(folder.path).sort(), [`${gateway.id}.sock`, "gw_living.sock", "note"].sort());
  server.close();
});

test("a folder that everybody can enter is not used", async () => {
  using folder = temporaryFolder("lines");
  chmodSync(folder.path, 0o711);
  await using gateway = await openGateway({ linesDir: folder.path });
  await using worker = await openWorker(comes(await ways.socket(folder.path)));
  await until("they know each other", () => worker.peers.has(gateway.peers.peer) && gateway.peers.has(worker.peers.peer));
  assert.equal(await sendOne(worker.hub, gateway.hub), "sent");
  assert.deepEqual([worker.asked, existsSync(join(folder.path, `${gateway.id}.sock`))], [[], false]);
});

test("the socket has the name of the gateway, and a worker of the same machine comes there rather than to the port", async () => {
  using folder = temporaryFolder("lines");
  const [socket, tls] = [await ways.socket(folder.path), await ways.tls(folder.path)];
  await using gateway = await openGateway({ ...socket.settings, ...tls.settings });
  await using worker = await openWorker(comes(socket));
  await until("the line", () => gateway.hub.lines.has(worker.peers.peer));
  assert.deepEqual([readdirSync(folder.path), worker.asked[0]?.address], [[`${gateway.id}.sock`], undefined]);
});

test("gateways of one machine take ports one after the other", async () => {
  const { settings } = await ways.tls("");
  await using _first = await openGateway(settings);
  await using _second = await openGateway(settings);
  await using worker = await openWorker(async () => {});
  await until("both have asked", () => worker.asked.length >= 2);
  const ports = worker.asked.map(({ address }) => address?.port ?? 0).sort((one, other) => one - other);
  assert.equal(new Set(ports).size, 2);
  assert.equal(ports[0], settings.linesPort);
});

test("a gateway whose NATS server is on its own machine alone listens for no other, nor does one that is told not to", async () => {
  for (const settings of [{ linesPort: await testPort() }, { linesHost: "127.0.0.1", linesPort: 0 }]) {
    await using gateway = await openGateway(settings);
    await using worker = await openWorker(async () => {});
    await until("they know each other", () => worker.peers.has(gateway.peers.peer) && gateway.peers.has(worker.peers.peer));
    assert.equal(await sendOne(worker.hub, gateway.hub), "sent");
    assert.deepEqual(worker.asked, []);
  }
});
