/** Streams over a line: as over NATS, and over NATS when the line is lost. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { subjects } from "../../../../../shared/bus/subjects.ts";
import { SandgateError } from "../../../../../shared/errors.ts";
import { encodeFrame } from "../../../../../shared/stream/frame.ts";
import { Stream } from "../../../../../shared/stream/stream.ts";
import { fixture } from "../../../../helpers/fixture.ts";
import { temporaryFolder } from "../../../../helpers/folder.ts";
import { type Join, joinBySocket, joinByTls, type LineProxy } from "../../../../helpers/lines.ts";
import { startNats } from "../../../../helpers/nats.ts";
import { drainStream, type Member } from "../../../../helpers/streams.ts";
import { until } from "../../../../helpers/until.ts";

const nats = await fixture(startNats());
const KiB = 1024;

/** The ways by which two processes have a line. */
const ways: Readonly<Record<"socket" | "tls", Join>> = { socket: joinBySocket, tls: joinByTls };
type Name = keyof typeof ways;

/** Two processes with a line. */
async function joined(way: Name): Promise<{ from: Member; to: Member; proxy: LineProxy } & Disposable> {
  const folder = temporaryFolder("streams");
  const [from, to] = await Promise.all([nats.member(), nats.member()]);
  await until("the two to know each other", () => from.peers.has(to.peers.peer) && to.peers.has(from.peers.peer));
  const proxy = await ways[way](from, to, folder);
  return { from, to, proxy, [Symbol.dispose]: () => [proxy, folder].forEach((one) => one[Symbol.dispose]()) };
}

function openBetween({ from, to }: { from: Member; to: Member }, windowBytes = 64 * KiB): { sender: Stream; receiver: Stream } {
  const receiver = Stream.open(to.hub, from.peers.peer, { windowBytes });
  return { receiver, sender: Stream.answer(from.hub, receiver.target, { windowBytes }) };
}

async function send(sender: Stream, bytes: Buffer, pieceBytes: number): Promise<void> {
  for (let at = 0; at < bytes.length; at += pieceBytes) await sender.write(bytes.subarray(at, at + pieceBytes));
  sender.end({ sent: bytes.length });
}

/** How many messages of streams NATS has seen since. */
async function messagesOnNats({ bus }: Member): Promise<{ count: number }> {
  const seen = { count: 0 };
  bus.connection.subscribe(subjects.stream("*", "*"), { callback: () => void seen.count++ });
  await bus.connection.flush();
  return seen;
}

const none = { socket: 0, tls: 0, nats: 0 };

for (const way of ["socket", "tls"] as const) {
  test(`${way}: streams in both directions go over the line and not over NATS, wherever their frames are cut`, async () => {
    using pair = await joined(way);
    const seen = await messagesOnNats(pair.from);
    pair.proxy.pieceBytes = 1_001;
    const all = Array.from({ length: 6 }, (_, index) => {
      const { sender, receiver } = index % 2 ? openBetween(pair) : openBetween({ from: pair.to, to: pair.from });
      return { bytes: randomBytes(300_000 + index), sender, receiver };
    });
    const results = await Promise.all(
      all.map(({ bytes, sender, receiver }, index) => Promise.all([drainStream(receiver), send(sender, bytes, 20_000 + index)])),
    );
    for (const [index, [{ bytes, summary, error }]] of results.entries()) {
      assert.equal(error, undefined);
      assert.ok(bytes.equals(all[index]?.bytes as Buffer));
      assert.deepEqual(summary, { sent: bytes.length });
    }
    await pair.from.bus.connection.flush();
    assert.equal(seen.count, 0);
    for (const { hub } of [pair.from, pair.to]) assert.deepEqual([hub.lines.counts, hub.open], [{ ...none, [way]: 6 }, 0]);
  });

  test(`${way}: a line lost in the middle, with all that was on it: every byte comes once, and new streams go over NATS until there is another`, async () => {
    using pair = await joined(way);
    const bytes = randomBytes(3 * KiB * KiB);
    const streams = Array.from({ length: 4 }, (_, index) => (index % 2 ? openBetween(pair) : openBetween({ from: pair.to, to: pair.from })));
    const work = streams.map(({ sender, receiver }) => Promise.all([drainStream(receiver), send(sender, bytes, 30_000)]));
    // None of them can be at its end then.
    await pair.proxy.holdAfter(bytes.length / 2);
    await new Promise((resolve) => setImmediate(resolve));
    pair.proxy.cut();
    for (const [read] of await Promise.all(work)) {
      assert.equal(read.error, undefined);
      assert.ok(read.bytes.equals(bytes));
    }
    assert.deepEqual([pair.from.hub.lines.counts, pair.to.hub.lines.counts], Array(2).fill({ ...none, [way]: 4, nats: 4 }));
    const { sender, receiver } = openBetween(pair);
    sender.end("over NATS");
    assert.equal((await drainStream(receiver)).summary, "over NATS");
    assert.equal(pair.from.hub.lines.counts.nats, 5);
  });

  test(`${way}: messages, ends and failures that were on a lost line come once`, async () => {
    using pair = await joined(way);
    const heard: unknown[] = [];
    const listener = { bytes: (bytes: Uint8Array) => void heard.push(`${Buffer.from(bytes)}`), message: (message: unknown) => void heard.push(message) };
    const receiver = Stream.open(pair.to.hub, pair.from.peers.peer, {
      listener: { ...listener, ended: (summary) => void heard.push(summary), broken: () => void heard.push("broken") },
    });
    const failing = openBetween(pair);
    const sender = Stream.answer(pair.from.hub, receiver.target);
    sender.say("first");
    await until("it has come", () => heard.length === 1);
    pair.proxy.hold();
    sender.push(Buffer.from("a"), Buffer.from("b"));
    sender.say({ second: 2 });
    sender.end("the end");
    failing.sender.fail(new SandgateError("insufficient_storage", "full"));
    pair.proxy.cut();
    const { error } = await drainStream(failing.receiver);
    assert.equal((error as SandgateError).code, "insufficient_storage");
    await until("the end", () => heard.length >= 4);
    assert.deepEqual(heard, ["first", "ab", { second: 2 }, "the end"]);
  });

  test(`${way}: a stream that nobody reads holds up no other on the same line`, async () => {
    using pair = await joined(way);
    const stuck = openBetween(pair);
    const filling = send(stuck.sender, randomBytes(KiB * KiB), 16_000).catch((error: unknown) => error);
    const { sender, receiver } = openBetween(pair);
    const bytes = randomBytes(2 * KiB * KiB);
    const [read] = await Promise.all([drainStream(receiver), send(sender, bytes, 50_000)]);
    assert.ok(read.bytes.equals(bytes));
    stuck.receiver.cancel(new SandgateError("unavailable", "nobody reads"));
    assert.match(String(await filling), /nobody reads/);
  });

  test(`${way}: a sender that does not keep to its credit ends its own stream, and no other`, async () => {
    using pair = await joined(way);
    const [flood, other] = [openBetween(pair), openBetween(pair)];
    for (let sent = 0; sent < 40; sent++) flood.sender.push(Buffer.alloc(64 * KiB));
    await until("the end of the flood", () => flood.receiver.signal.aborted);
    assert.match(String(flood.receiver.signal.reason), /keep to its credit/);
    other.sender.end("whole");
    assert.equal((await drainStream(other.receiver)).summary, "whole");
    assert.equal(pair.to.hub.lines.has(pair.from.peers.peer), true);
  });

  test(`${way}: who is at the other end of a line speaks for its own streams only`, async () => {
    using pair = await joined(way);
    using third = await joined(way);
    const { sender, receiver } = openBetween(pair);
    // The third has a line to the receiver as well, and knows the name of the stream.
    const folder = fixture(temporaryFolder("forger"));
    const forged = await ways[way](third.from, pair.to, folder);
    const forging = Stream.answer(third.from.hub, { ...receiver.target, peer: pair.to.peers.peer });
    forging.push(Buffer.from("forged"));
    // What follows on the same line has come after it.
    const own = openBetween({ from: third.from, to: pair.to });
    own.sender.end("own");
    assert.equal((await drainStream(own.receiver)).summary, "own");
    await sender.write(Buffer.from("real"));
    sender.end({});
    assert.equal((await drainStream(receiver)).bytes.toString(), "real");
    forging.close();
    forged[Symbol.dispose]();
  });

  test(`${way}: a process that ends together with its line is gone before one that only misses its beats`, async () => {
    using folder = temporaryFolder("streams");
    const [from, other] = await Promise.all([nats.member(), nats.member()]);
    await until("the other", () => from.peers.has(other.peers.peer));
    const to = await nats.member();
    await until("the two to know each other", () => from.peers.has(to.peers.peer) && to.peers.has(from.peers.peer));
    using proxy = await ways[way](from, to, folder);
    const gone: string[] = [];
    from.peers.onGone((peer) => gone.push(peer));
    await Promise.all([other, to].map(({ bus }) => bus.connection.close()));
    proxy.cut();
    await until("both ends", () => gone.length >= 2);
    assert.deepEqual(gone, [to.peers.peer, other.peers.peer]);
  });

  test(`${way}: a line that is replaced loses nothing`, async () => {
    using pair = await joined(way);
    const bytes = randomBytes(2 * KiB * KiB);
    const { sender, receiver } = openBetween(pair);
    const work = Promise.all([drainStream(receiver), send(sender, bytes, 30_000)]);
    await until("it is under way", () => pair.proxy.passedBytes > KiB * KiB);
    const folder = fixture(temporaryFolder("second"));
    const second = await ways[way](pair.from, pair.to, folder);
    const [read] = await work;
    assert.equal(read.error, undefined);
    assert.ok(read.bytes.equals(bytes));
    second[Symbol.dispose]();
  });

  test(`${way}: the same frame over NATS and over the line counts once`, async () => {
    using pair = await joined(way);
    const { sender, receiver } = openBetween(pair);
    await sender.write(Buffer.from("once"));
    pair.from.bus.publish(subjects.stream(pair.to.peers.peer, receiver.streamId), encodeFrame({ seq: 0 }, Buffer.from("once")));
    await pair.from.bus.connection.flush();
    sender.end({});
    assert.equal((await drainStream(receiver)).bytes.toString(), "once");
  });
}
