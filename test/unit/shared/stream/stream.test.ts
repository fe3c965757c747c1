/** Streams between two processes over a real nats-server. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { subjects } from "../../../../shared/bus/subjects.ts";
import { type ErrorCode, SandgateError } from "../../../../shared/errors.ts";
import { encodeFrame } from "../../../../shared/stream/frame.ts";
import { Stream } from "../../../../shared/stream/stream.ts";
import { fixture } from "../../../helpers/fixture.ts";
import { startNats } from "../../../helpers/nats.ts";
import { drainStream, openStream, type StreamPair } from "../../../helpers/streams.ts";
import { until } from "../../../helpers/until.ts";

const nats = await fixture(startNats());

/** A frame that no sender of ours would send. */
const forge = ({ from, receiver, to }: StreamPair, frame: Uint8Array): void => from.bus.publish(subjects.stream(to.peers.peer, receiver.streamId), frame);

function assertError(error: unknown, code: ErrorCode, pattern: RegExp): void {
  assert.ok(error instanceof SandgateError, `${error}`);
  assert.equal(error.code, code);
  assert.match(error.message, pattern);
}
const assertUnavailable = (error: unknown, pattern: RegExp): void => assertError(error, "unavailable", pattern);

test("all bytes arrive in order, then the summary", async () => {
  const { sender, receiver, from, to } = await openStream(nats);
  const parts = Array.from({ length: 500 }, (_, index) => Buffer.alloc(1 + ((index * 7_919) % 4_000), index % 251));
  const reading = drainStream(receiver);
  for (const part of parts) await sender.write(part);
  sender.end({ exit_code: 3 });
  const { bytes, summary } = await reading;
  assert.ok(bytes.equals(Buffer.concat(parts)));
  assert.deepEqual(summary, { exit_code: 3 });
  assert.deepEqual([from.hub.open, to.hub.open], [0, 0], "nothing of the stream is kept");
});

test("a sender without credit waits: never more than the window and one frame is in flight", async () => {
  const window = 10_000;
  const frame = Buffer.alloc(3_000);
  const { sender, receiver } = await openStream(nats, window);
  let sent = 0;
  let taken = 0;
  let peak = 0;
  const sending = (async () => {
    for (let index = 0; index < 100; index++) {
      await sender.write(frame);
      sent += frame.length;
      peak = Math.max(peak, sent - taken);
    }
    sender.end({});
  })();
  await until("a full window", () => sent >= window);
  await sleep(200);
  assert.equal(sent, 12_000, "nobody reads, so no more is sent");
  for await (const chunk of receiver.read()) taken += chunk.length;
  await sending;
  assert.equal(taken, 300_000);
  assert.ok(peak <= window + 2 * frame.length, `${peak} bytes were in flight`);
});

test("a cancelled stream ends its sender, also one that waits for room", async () => {
  const { sender, receiver } = await openStream(nats, 10);
  await sender.write(Buffer.alloc(10));
  const waiting = sender.write(Buffer.alloc(10));
  receiver.cancel(new SandgateError("conflict", "enough"));
  await assert.rejects(waiting, { code: "conflict", message: "enough" });
  assert.equal(sender.signal.aborted, true);
  await assert.rejects(sender.write(Buffer.alloc(1)), { code: "conflict" });
  assert.equal(((await drainStream(receiver)).error as SandgateError).code, "conflict");
});

test("a sender that fails ends the stream with its error, after the bytes it had sent", async () => {
  const { sender, receiver } = await openStream(nats);
  await sender.write(Buffer.from("part"));
  sender.fail(new SandgateError("insufficient_storage", "full"));
  const { bytes, error } = await drainStream(receiver);
  assert.equal(bytes.toString(), "part");
  assert.deepEqual([(error as SandgateError).code, (error as SandgateError).message], ["insufficient_storage", "full"]);
});

test("what comes after the end of a sender is not sent", async () => {
  const { sender, receiver } = await openStream(nats);
  sender.end({ first: true });
  sender.end({ second: true });
  sender.fail(new SandgateError("unavailable", "late"));
  assert.deepEqual((await drainStream(receiver)).summary, { first: true });
});

test("a missing frame is an error for the reader and stops the sender", async () => {
  const pair = await openStream(nats);
  await pair.sender.write(Buffer.from("a"));
  forge(pair, encodeFrame({ seq: 5 }, Buffer.from("b")));
  const { bytes, error } = await drainStream(pair.receiver);
  assert.equal(bytes.toString(), "a");
  assertUnavailable(error, /expected frame 1, got 5/);
  await until("the sender's end", () => pair.sender.signal.aborted);
});

test("an end that counts other bytes than arrived is an error", async () => {
  const pair = await openStream(nats);
  await pair.sender.write(Buffer.from("abc"));
  forge(pair, encodeFrame({ seq: 1, end: { bytes: 4, summary: {} } }));
  assertUnavailable((await drainStream(pair.receiver)).error, /expected 4 bytes, got 3/);
});

test("a message that is no frame is an error, not silence", async () => {
  const pair = await openStream(nats);
  forge(pair, Buffer.from("garbage"));
  const { error } = await drainStream(pair.receiver);
  assert.equal((error as SandgateError).code, "internal_error");
  await until("the sender's end", () => pair.sender.signal.aborted);
});

test("a peer that leaves ends the streams with it at both ends", async () => {
  const one = await openStream(nats);
  one.from.peers.leave();
  assertError((await drainStream(one.receiver)).error, "worker_lost", /lost/);
  const two = await openStream(nats);
  two.to.peers.leave();
  await until("the sender's end", () => two.sender.signal.aborted);
  assertError(two.sender.signal.reason, "worker_lost", /lost/);
});

test("a receiver that took its sender for dead stops it", async () => {
  const { sender, receiver } = await openStream(nats);
  receiver.abort(new SandgateError("unavailable", "silent for too long"));
  await until("the sender's end", () => sender.signal.aborted);
  assertUnavailable(sender.signal.reason, /silent/);
});

test("streams of a process end when it runs out of time", async () => {
  const { sender, receiver, from, to } = await openStream(nats, 10);
  await sender.write(Buffer.alloc(10));
  const waiting = sender.room();
  from.hub.abortAll(new SandgateError("unavailable", "shutting down"));
  await assert.rejects(waiting, /shutting down/);
  to.hub.abortAll(new SandgateError("unavailable", "shutting down"));
  assertUnavailable((await drainStream(receiver)).error, /shutting down/);
});

test("a lost bus ends the streams at both ends, and new ones work when it is back", async () => {
  const { from, to, sender, receiver } = await openStream(nats);
  await sender.write(Buffer.from("before"));
  const reading = drainStream(receiver);
  await nats.server.kill9();
  try {
    assertUnavailable((await reading).error, /message bus/);
    await until("the sender's end", () => sender.signal.aborted);
    const orphan = Stream.answer(from.hub, receiver.target);
    await assert.rejects(orphan.write(Buffer.from("lost")), { code: "unavailable" });
  } finally {
    await nats.server.start();
  }
  await until("both connections", () => from.bus.connected && to.bus.connected);
  const again = await openStream(nats);
  again.sender.end({ works: true });
  assert.deepEqual((await drainStream(again.receiver)).summary, { works: true });
});

for (const [what, end] of Object.entries({
  cancel: { cancel: { code: "unavailable", message: "the client is gone" } },
  failure: { seq: 0, fail: { code: "unavailable", message: "the client is gone" } },
} as const)) {
  test(`a ${what} that comes before this end is open is heard when it opens`, async () => {
    const [from, to] = await Promise.all([nats.member(), nats.member()]);
    const opened = Stream.open(from.hub, to.peers.peer);
    // Anything after it would arrive after it.
    let arrived = false;
    to.bus.connection.subscribe("after", {
      callback: () => {
        arrived = true;
      },
    });
    await to.bus.connection.flush();
    from.bus.publish(subjects.stream(to.peers.peer, opened.streamId), encodeFrame(end));
    from.bus.publish("after", new Uint8Array());
    await until("it has arrived", () => arrived);
    const answering = Stream.answer(to.hub, opened.target);
    assertUnavailable((await drainStream(answering)).error, /the client is gone/);
    for (const each of [opened, answering]) each.close();
  });
}
