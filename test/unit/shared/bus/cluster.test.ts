/** Processes on different servers of a real cluster, of which one or two are away. */
import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import { BucketWriter } from "../../../../shared/bus/kv.ts";
import { BucketMirror } from "../../../../shared/bus/mirror.ts";
import type { Bus } from "../../../../shared/bus/nats.ts";
import { watchPulse } from "../../../../shared/bus/pulse.ts";
import { buckets } from "../../../../shared/bus/subjects.ts";
import { SandgateError } from "../../../../shared/errors.ts";
import type { AccountRecord } from "../../../../shared/schemas/records.ts";
import { Stream } from "../../../../shared/stream/stream.ts";
import { moveStreams } from "../../../../systemd/cluster/move.ts";
import { isComplete, setCopies, storedStreams } from "../../../../systemd/cluster/replicas.ts";
import { quiet, startCluster, startNats, type TestCluster, type TestNats } from "../../../helpers/nats.ts";
import { until } from "../../../helpers/until.ts";

let cluster: TestCluster;
beforeEach(async () => {
  cluster = await startCluster();
});
afterEach(() => cluster?.[Symbol.asyncDispose]());

const servers = (): [TestNats, TestNats, TestNats] => cluster.servers as unknown as [TestNats, TestNats, TestNats];
const account = (id: string): AccountRecord => ({ id, name: id, tier: "beta", suspended: false, created_at_ms: 1 });
const unchecked = (value: unknown): AccountRecord => value as AccountRecord;
/** A bucket with three copies. */
async function bucket(bus: Bus): Promise<BucketWriter<AccountRecord>> {
  const writer = await until("a leader", () => BucketWriter.open(bus, buckets.accounts, unchecked), 60_000);
  await until("three copies", async () => (await setCopies(bus, 3)).length === 0 && (await storedStreams(bus)).every(isComplete), 60_000);
  return writer;
}

test("calls and streams between two processes end with an error when one of them loses its server, and work afterwards", async () => {
  const [first, second] = servers();
  const [a, b] = [await first.member(), await second.member()];
  await until("both", () => a.peers.has(b.peers.peer) && b.peers.has(a.peers.peer));
  b.bus.serve("slow", () => new Promise(() => {}));
  b.bus.serve("echo", async (body) => body);
  await until("they hear each other", () => a.bus.call("echo", { n: 1 }, 1_000).then(Boolean));
  const stream = Stream.open(a.hub, b.peers.peer, { windowBytes: 1_024 });
  const reading = stream.readEach();
  const calling = a.peers.whilePresent(b.peers.peer, a.bus.call("slow", {}, 600_000));
  const ended = Promise.allSettled([reading, calling]);
  await second.server.kill9();
  for (const { status, reason } of (await ended) as PromiseRejectedResult[]) {
    assert.equal(status, "rejected");
    assert.ok(reason instanceof SandgateError && reason.retryAfterS !== undefined, String(reason));
  }
  assert.ok(a.bus.connected, "its own server was there all the time");
  assert.deepEqual(await until("they hear each other again", () => a.bus.call("echo", { n: 2 }, 1_000)), { n: 2 });
});

test("where the others do not answer the server that leads, nobody learns from it that something is not there", async () => {
  const [bus] = (await Promise.all(servers().map((server) => server.connect()))) as [Bus];
  const writer = await bucket(bus);
  const { cluster: group } = (await storedStreams(bus))[0] ?? {};
  const leading = servers()[Number(group?.leader?.slice(1))] ?? assert.fail("nobody leads");
  // Three copies that have just been made of one have stored something together before they are told apart.
  await writer.put("made", account("made"));
  const mirror = await BucketMirror.watch(await leading.connect(), buckets.accounts, unchecked, quiet);
  const others = servers().filter((server) => server !== leading);
  for (const { server } of others) server.signal("SIGSTOP");
  await mirror.caughtUp();
  await assert.rejects(mirror.certain(), (error) => error instanceof SandgateError && error.code === "unavailable");
  for (const { server } of others) server.signal("SIGCONT");
  await until("a write succeeds", () => writer.put("made", account("made")).then(() => true), 60_000);
  await until("it is certain", () => mirror.certain().then(() => true), 60_000);
  assert.deepEqual(
    [...mirror.entries()].map(([key]) => key),
    ["made"],
  );
  mirror.stop();
});

test("what was stored is there when the server that led is killed, and a mirror at another one has all that comes then", async () => {
  const buses = await Promise.all(servers().map((server) => server.connect()));
  const [firstBus] = buses as [Bus];
  const writer = await bucket(firstBus);
  const stored: string[] = [];
  for (let count = 0; count < 50; count++) {
    await writer.put(`k${count}`, account(`k${count}`));
    stored.push(`k${count}`);
  }
  const mirrors = await Promise.all(buses.map((bus) => BucketMirror.watch(bus, buckets.accounts, unchecked, quiet)));
  const { cluster: group } = (await storedStreams(firstBus))[0] ?? {};
  const leading = servers()[Number(group?.leader?.slice(1))];
  assert.ok(leading);
  await leading.server.kill9();
  await until("a write succeeds", async () => {
    await writer.put("later", account("later"));
    return true;
  });
  await writer.delete("k0");
  for (const mirror of mirrors) {
    await until("it has caught up", () => mirror.caughtUp().then(() => true), 60_000);
    assert.equal(mirror.get("later")?.name, "later");
    assert.equal(mirror.get("k0"), undefined);
    assert.deepEqual([...mirror.entries()].map(([key]) => key).sort(), [...stored.slice(1), "later"].sort());
    mirror.stop();
  }
});

test("without a majority the bus counts as lost, though a server answers, and comes back with the majority", async () => {
  const [first, second, third] = servers();
  const bus = await first.connect();
  await bucket(bus);
  const stop = await watchPulse(bus, "test", quiet);
  await setCopies(bus, 3);
  try {
    const outages: string[] = [];
    bus.onLost(() => outages.push("lost"));
    bus.onRestored(() => outages.push("back"));
    // The one that is left is the one that it is connected to.
    await Promise.all([second.server.kill9(), third.server.kill9()]);
    await until("it is known", () => !bus.connected, 60_000);
    assert.equal(bus.connection.isClosed(), false);
    await assert.rejects(bus.call("anything", {}, 1_000), { code: "unavailable" });
    await Promise.all([second.server.start(), third.server.start()]);
    await until("it is back", () => bus.connected, 60_000);
    assert.deepEqual(outages, ["lost", "back"]);
  } finally {
    stop();
  }
});

test("all that a single server has stored moves into a cluster as it was, once, however often that is tried", async () => {
  await using single = await startNats();
  const [from, to] = [await single.connect(), await servers()[0].connect()];
  const writer = await BucketWriter.open(from, buckets.accounts, unchecked);
  for (let count = 0; count < 300; count++) await writer.put(`k${count % 40}`, account(`${count}`));
  await writer.delete("k7");
  const other = await BucketWriter.open(from, buckets.keys, unchecked);
  await other.put("k", account("k"));
  const before = await writer.readVersion("k39");
  await bucket(to); // One that is there and has something else, as after an interrupted attempt.
  const moved: string[] = [];
  await moveStreams(from, to, 3, (name) => moved.push(name));
  assert.deepEqual(moved.sort(), ["KV_sandgate_accounts", "KV_sandgate_keys"]);
  const there = await BucketWriter.open(to, buckets.accounts, unchecked);
  assert.deepEqual(await there.readVersion("k39"), before);
  assert.equal(await there.read("k7"), undefined);
  assert.equal(await there.replace("k39", account("new"), 1), undefined);
  assert.ok(await there.replace("k39", account("new"), before?.revision ?? 0));
  assert.deepEqual(
    (await storedStreams(to)).map(({ config }) => config.num_replicas),
    [3, 3],
  );
});
