/** Buckets in memory, over a real nats-server. */
import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import { jetstreamManager } from "@nats-io/jetstream";
import type { KvEntry } from "@nats-io/kv";
import { TimeoutError } from "@nats-io/transport-node";
import { BucketWatch, positionOf } from "../../../../shared/bus/bucket-watch.ts";
import { busLost, inTime } from "../../../../shared/bus/failures.ts";
import { openStorage } from "../../../../shared/bus/jetstream.ts";
import { BucketWriter, openBucket } from "../../../../shared/bus/kv.ts";
import { BucketMirror } from "../../../../shared/bus/mirror.ts";
import { bucketStream, buckets } from "../../../../shared/bus/subjects.ts";
import { AccountRecord } from "../../../../shared/schemas/records.ts";
import { checker } from "../../../../shared/schemas/validate.ts";
import { pause } from "../../../../shared/waiting.ts";
import { quiet, startNats, type TestNats } from "../../../helpers/nats.ts";
import { until } from "../../../helpers/until.ts";

let nats: TestNats;
const check = checker(AccountRecord);
const account = (id: string, name = id): AccountRecord => ({ id, name, tier: "beta", suspended: false, created_at_ms: 1 });

beforeEach(async () => {
  nats = await startNats();
});
afterEach(() => nats?.[Symbol.asyncDispose]());

const writer = async (): Promise<BucketWriter<AccountRecord>> => BucketWriter.open(await nats.connect(), buckets.accounts, check);
const mirror = async (): Promise<BucketMirror<AccountRecord>> => BucketMirror.watch(await nats.connect(), buckets.accounts, check, quiet);
const keysOf = (of: BucketMirror<AccountRecord>): string =>
  [...of.entries()]
    .map(([key]) => key)
    .sort()
    .join();

test("a mirror of an empty bucket is ready at once, and stays so when all was deleted", async () => {
  assert.equal(keysOf(await mirror()), "");
  const writing = await writer();
  await writing.put("a", account("a"));
  await writing.delete("a");
  assert.equal(keysOf(await mirror()), "");
});

test("a mirror holds the whole bucket when it is ready", async () => {
  const writing = await writer();
  await Promise.all(Array.from({ length: 300 }, (_, index) => writing.put(`k${index}`, account(`k${index}`))));
  await writing.delete("k7");
  const reading = await mirror();
  assert.equal([...reading.values()].length, 299);
  assert.equal(reading.get("k7"), undefined);
  assert.deepEqual(reading.get("k8"), account("k8"));
  assert.equal((await writing.keys()).length, 299);
});

test("changes and deletions arrive, in order, with a call for each", async () => {
  const [writing, reading] = [await writer(), await mirror()];
  const heard: string[] = [];
  reading.onChange((key, value) => heard.push(`${key}=${value?.name}`));
  // A value that is replaced before anybody was told of it is never heard of.
  await writing.put("a", account("a", "one"));
  await until("the first", () => heard.length === 1);
  await writing.put("a", account("a", "two"));
  await until("the second", () => heard.length === 2);
  await writing.delete("a");
  await until("the third", () => heard.length === 3);
  assert.deepEqual(heard, ["a=one", "a=two", "a=undefined"]);
  assert.equal(reading.get("a"), undefined);
});

/** Entries as a server brings them that counts one too many as still to come, which 2.9 does now and then while others write. */
async function* miscounted(entries: AsyncIterable<KvEntry>): AsyncGenerator<KvEntry> {
  for await (const entry of entries) yield Object.create(entry, { delta: { value: (entry.delta ?? 0) + 1 } });
}

test("a watch has begun once it has brought all that there was, however much the server counts as still to come", async () => {
  const bus = await nats.connect();
  const writing = await writer();
  for (const key of ["a", "b"]) await writing.put(key, account(key));
  const kv = await openBucket(bus, buckets.accounts);
  const { jsm } = await openStorage(bus);
  const watch = async (): Promise<object> => {
    const entries = await kv.watch();
    return Object.assign(miscounted(entries), { stop: () => entries.stop() });
  };
  const { revision } = await positionOf(kv);
  const begun = Promise.withResolvers<BucketWatch>();
  let keys: string[] = [];
  const present = (entries: ReadonlyMap<string, KvEntry>): void => {
    keys = [...entries.keys()];
  };
  const parts = { kv: Object.assign(Object.create(kv), { watch }), jsm, revision, present, change: () => {}, progress: () => {} };
  await inTime(BucketWatch.begin(parts, begun.resolve), 5_000);
  assert.deepEqual(keys, ["a", "b"]);
  (await begun.promise).stop();
});

test("what a mirror writes is in its own memory when the write is done", async () => {
  const reading = await mirror();
  await reading.put("mine", account("mine"));
  assert.equal(reading.get("mine")?.name, "mine");
});

test("a miss in memory asks the server", async () => {
  const [writing, reading] = [await writer(), await mirror()];
  await writing.put("new", account("new"));
  assert.equal((await reading.find("new"))?.name, "new");
  assert.equal(await reading.find("never"), undefined);
  assert.equal(await writing.read("never"), undefined);
});

test("an entry that is not valid is ignored, the others are taken", async () => {
  const writing = await writer();
  await writing.put("bad", { id: "bad" } as AccountRecord);
  await writing.put("good", account("good"));
  assert.equal(keysOf(await mirror()), "good");
  await assert.rejects(writing.read("bad"), { code: "internal_error" });
});

test("after a restart of the server a mirror is complete again, with what came and went meanwhile", async () => {
  const before = await writer();
  for (const key of ["stays", "goes"]) await before.put(key, account(key));
  const reading = await mirror();
  await nats.server.kill9();
  await nats.server.start();
  const writing = await writer();
  await writing.delete("goes");
  await writing.put("comes", account("comes"));
  await until("the news", () => keysOf(reading) === "comes,stays");
  await writing.put("later", account("later"));
  await until("later news", () => keysOf(reading) === "comes,later,stays");
});

/** Ends the watches of a bucket as the server would. */
async function loseWatches(): Promise<void> {
  const { consumers } = await jetstreamManager((await nats.connect()).connection);
  for await (const { name } of consumers.list(bucketStream(buckets.accounts))) await consumers.delete(bucketStream(buckets.accounts), name);
}

test("a mirror whose watch the server has lost begins another one by itself, and has what came and went meanwhile", async () => {
  const [writing, reading] = [await writer(), await mirror()];
  for (const key of ["stays", "goes"]) await writing.put(key, account(key));
  await until("both", () => keysOf(reading) === "goes,stays");
  await loseWatches();
  await writing.delete("goes");
  await writing.put("comes", account("comes"));
  await until("the news", () => keysOf(reading) === "comes,stays");
  await writing.put("later", account("later"));
  await until("later news", () => keysOf(reading) === "comes,later,stays");
});

test("a watch that does not come to its beginning is given up and begins again, whatever becomes of the server meanwhile", async () => {
  const writing = await writer();
  // Not all at once: each is to be confirmed in time.
  for (let from = 0; from < 3_000; from += 300)
    await Promise.all(Array.from({ length: 300 }, (_, index) => writing.put(`k${from + index}`, account(`k${from + index}`, "x".repeat(1_000)))));
  const reading = await BucketMirror.watch(await nats.connect(), buckets.accounts, check, quiet, { stallMs: 1_000 });
  const { consumers } = await jetstreamManager((await nats.connect()).connection);
  const stream = bucketStream(buckets.accounts);
  for (let round = 0; round < 3; round++) {
    await nats.server.kill9();
    await nats.server.start();
    // Each watch is lost at another moment, most of them while it brings what is stored.
    for (let [lost, tries] = [0, 0]; lost < 2 && tries < 300; tries++) {
      await pause(10);
      for (const { name } of await consumers
        .list(stream)
        .next()
        .catch(() => [])) {
        await pause(round * 2);
        if (await consumers.delete(stream, name).catch(() => false)) lost++;
      }
    }
  }
  await until("it can be written", () => writing.put("comes", account("comes")).then(() => true));
  await until("the news", () => reading.get("comes") !== undefined);
  assert.equal([...reading.values()].length, 3_001);
});

test("a mirror whose bucket goes and comes back has what is in it then", async () => {
  const reading = await mirror();
  await (await writer()).put("first", account("first"));
  await until("the first", () => keysOf(reading) === "first");
  await (await jetstreamManager((await nats.connect()).connection)).streams.delete(bucketStream(buckets.accounts));
  const writing = await writer();
  for (const key of ["second", "third"]) await writing.put(key, account(key));
  await until("what is there now", () => keysOf(reading) === "second,third");
});

test("a mirror that was stopped is not told any more", async () => {
  const [writing, reading] = [await writer(), await mirror()];
  reading.stop();
  await writing.put("late", account("late"));
  await (await mirror()).caughtUp();
  assert.equal(keysOf(reading), "");
});

test("deletions can be forgotten without a trace, young ones and values are kept", async () => {
  const [writing, reading] = [await writer(), await mirror()];
  for (const key of ["kept", "removed"]) await writing.put(key, account(key));
  await writing.delete("removed");
  await until("the deletion", () => keysOf(reading) === "kept");
  const messages = async (): Promise<number> =>
    (await (await jetstreamManager((await nats.connect()).connection)).streams.info(`KV_${buckets.accounts}`)).state.messages;
  await writing.forgetDeleted(60_000);
  assert.equal(await messages(), 2);
  await writing.forgetDeleted(0);
  await until("the end of the mark", async () => (await messages()) === 1);
  assert.equal(keysOf(reading), "kept");
  assert.equal(keysOf(await mirror()), "kept");
});

test("a watch misses no change while others delete and deletions are forgotten", async () => {
  const writers = [await writer(), await writer()];
  const [forgetting, watching] = [await writer(), await mirror()];
  let isWriting = true;
  const write = async (writing: BucketWriter<AccountRecord>, who: number): Promise<void> => {
    for (let round = 0; round < 200; round++) {
      const key = `key-${who}-${round % 50}`;
      await writing.put(key, account(key, String(round)));
      if (round % 3 === 0) await writing.delete(key);
    }
  };
  const written = Promise.all(writers.map(write)).finally(() => {
    isWriting = false;
  });
  while (isWriting) await forgetting.forgetDeleted(0);
  await written;
  await watching.caughtUp();
  const stored = await Promise.all((await forgetting.keys()).map((key) => forgetting.read(key)));
  const byId = (a?: AccountRecord, b?: AccountRecord): number => ((a?.id ?? "") < (b?.id ?? "") ? -1 : 1);
  await until("the last news", () => [...watching.entries()].length === stored.length);
  assert.deepEqual([...watching.values()].sort(byId), stored.sort(byId));
});

test("without the server a write is refused, not lost", async () => {
  const writing = await writer();
  await nats.server.kill9();
  await assert.rejects(writing.put("a", account("a")), { code: "unavailable" });
  await nats.server.start();
  await until("a write", async () => {
    await writing.put("b", account("b"));
    return true;
  });
  assert.deepEqual(await writing.keys(), ["b"]);
});

test("what was stored survives kill -9 of the server", async () => {
  const before = await writer();
  await before.put("kept", account("kept"));
  await before.put("removed", account("removed"));
  await before.delete("removed");
  await nats.server.kill9();
  await nats.server.start();
  assert.equal(keysOf(await mirror()), "kept");
});

test("a record that is too large is refused as such, and the bucket goes on", async () => {
  const writing = await writer();
  const large = account("a", "x".repeat(2 * 1024 * 1024));
  for (const write of [() => writing.put("a", large), () => writing.create("b", large), () => writing.replace("a", large, 1)]) {
    await assert.rejects(write(), { code: "payload_too_large" });
  }
  await writing.put("a", account("a"));
  assert.deepEqual(await writing.read("a"), account("a"));
});

test("a full bucket says so, and when to try again; it keeps what it has, lets it be deleted, and goes on when there is room", async () => {
  const writing = await writer();
  const { streams } = await jetstreamManager((await nats.connect()).connection);
  const { config } = await streams.info(bucketStream(buckets.accounts));
  await streams.update(config.name, { ...config, max_bytes: 16 * 1024 });
  const keys = Array.from({ length: 100 }, (_, index) => `k${index}`);
  const stored: string[] = [];
  await assert.rejects(
    async () => {
      for (const key of keys) stored.push(await writing.put(key, account(key, "x".repeat(1_000))).then(() => key));
    },
    { code: "insufficient_storage", message: "the service's storage is full", retryAfterS: 10 },
  );
  assert.ok(stored.length > 0);
  assert.deepEqual((await writing.keys()).sort(), stored.toSorted());
  for (const key of stored.splice(0, stored.length / 2)) await writing.delete(key);
  await writing.put("last", account("last"));
  assert.deepEqual((await writing.keys()).sort(), ["last", ...stored].sort());
});

test("a server whose storage does not answer is not taken for one that is gone", () => {
  const { code, message, retryAfterS } = busLost(new TimeoutError());
  assert.deepEqual([code, message, retryAfterS], ["unavailable", "the service's storage does not answer; try again", 2]);
});

test("a listener that throws keeps neither the mirror nor the others from the change", async () => {
  const held = await mirror();
  const heard: string[] = [];
  held.onChange(() => {
    throw new Error("of the listener");
  });
  held.onChange((key) => heard.push(key));
  const writing = await writer();
  for (const key of ["a", "b"]) await writing.put(key, account(key));
  await until("both changes", () => heard.join() === "a,b" && keysOf(held) === "a,b");
});

test("gateways that start at the same moment make the same buckets", async () => {
  const gateways = await Promise.all(Array.from({ length: 8 }, () => nats.connect()));
  const { streams } = await jetstreamManager((await nats.connect()).connection);
  for (let round = 0; round < 30; round++) {
    await Promise.all(Object.values(buckets).flatMap((name) => gateways.map((one) => openBucket(one, name))));
    for (const name of Object.values(buckets)) await streams.delete(bucketStream(name));
  }
});
