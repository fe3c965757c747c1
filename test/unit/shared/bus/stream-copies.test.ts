/** Copies of whole streams, on real servers. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { jetstream, jetstreamManager, StorageType } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import { CopyFailed, copyStream, makeStreamAgain, type StreamShape } from "../../../../shared/bus/stream-copies.ts";
import { startNats } from "../../../helpers/nats.ts";

const name = "copied";
const payload = (number: number): string => `${number} `.repeat(5_000);

async function withStream(connection: NatsConnection, messages: number): Promise<void> {
  const { streams } = await jetstreamManager(connection);
  await streams.add({ name, subjects: [`${name}.>`], storage: StorageType.File, max_bytes: 64 * 1024 ** 2 });
  for (let number = 1; number <= messages; number++) await jetstream(connection).publish(`${name}.${number}`, payload(number));
}

async function copyOf(connection: NatsConnection): Promise<{ shape: StreamShape; pieces: Uint8Array[] }> {
  const pieces: Uint8Array[] = [];
  const copy = await copyStream(connection, name);
  assert.ok(copy);
  for await (const piece of copy.pieces) pieces.push(Uint8Array.from(piece));
  return { shape: copy.shape, pieces };
}

async function* given(pieces: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* pieces;
}

test("a stream that is written to meanwhile is made again on another server, with all that was in it when the copy began", async () => {
  await using one = await startNats();
  await using other = await startNats();
  const [from, to] = [(await one.connect()).connection, (await other.connect()).connection];
  await withStream(from, 200);
  let isOver = false;
  const writing = (async () => {
    for (let number = 201; !isOver; number++) await jetstream(from).publish(`${name}.${number}`, payload(number));
  })();
  const { shape, pieces } = await copyOf(from);
  isOver = true;
  await writing;
  assert.ok(shape.state.last_seq >= 200);
  await makeStreamAgain(to, shape, given(pieces));
  const { streams } = await jetstreamManager(to);
  for (const number of [1, 100, 200, shape.state.last_seq]) {
    assert.equal((await streams.getMessage(name, { seq: number }))?.string(), payload(number));
  }
});

test("a stream that is not there has no copy", async () => {
  await using nats = await startNats();
  assert.equal(await copyStream((await nats.connect()).connection, name), undefined);
});

test("a copy that is not whole makes no stream, and one that is there is not written over", async () => {
  await using one = await startNats();
  await using other = await startNats();
  const [from, to] = [(await one.connect()).connection, (await other.connect()).connection];
  await withStream(from, 50);
  const { shape, pieces } = await copyOf(from);
  await assert.rejects(makeStreamAgain(to, shape, given(pieces.slice(0, -1))), CopyFailed);
  await assert.rejects(makeStreamAgain(from, shape, given(pieces)), CopyFailed);
  assert.equal((await (await jetstreamManager(from)).streams.info(name)).state.messages, 50);
});

test("a reader that stops early ends the copy, and another one can be made", async () => {
  await using nats = await startNats();
  const { connection } = await nats.connect();
  await withStream(connection, 50);
  const copy = await copyStream(connection, name);
  assert.ok(copy);
  for await (const piece of copy.pieces) {
    assert.ok(piece.length > 0);
    break;
  }
  for await (const _ of copy.pieces) assert.fail("a piece after the end");
  assert.equal((await copyOf(connection)).shape.state.messages, 50);
});
