/** Directory entries whose workers may lie, over a real nats-server. */
import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import { EntryMirror } from "../../../../gateway/fleet/entries.ts";
import { SandboxEntry } from "../../../../shared/bus/entries.ts";
import { BucketWriter } from "../../../../shared/bus/kv.ts";
import { buckets, entryKey } from "../../../../shared/bus/subjects.ts";
import { checker } from "../../../../shared/schemas/validate.ts";
import { quiet, startNats, type TestNats } from "../../../helpers/nats.ts";

const check = checker(SandboxEntry);
let nats: TestNats;
let bucket: BucketWriter<SandboxEntry>;

beforeEach(async () => {
  nats = await startNats();
  bucket = await BucketWriter.open(await nats.connect(), buckets.sandboxes, check);
});
afterEach(() => nats?.[Symbol.asyncDispose]());

const mirror = async (): Promise<EntryMirror<SandboxEntry>> => EntryMirror.watch(await nats.connect(), buckets.sandboxes, check, quiet);

function entry(worker_id: string, id: string): SandboxEntry {
  const size = { cpu: 1, memory: 512, storage: 5, network: "none", image: "default" } as const;
  return { id, name: id, account_id: "a", key_id: "k", worker_id, status: "running", created_at_ms: 1, ...size };
}

test("an entry counts only under the name of its key", async () => {
  const reading = await mirror();
  await bucket.put(entryKey("w1", "sb_1"), entry("w2", "sb_1"));
  await bucket.put(entryKey("w1", "sb_2"), entry("w1", "sb_3"));
  await bucket.put(entryKey("w1", "sb_4"), entry("w1", "sb_4"));
  await reading.caughtUp();
  assert.deepEqual(
    [...reading.values()].map(({ id }) => id),
    ["sb_4"],
  );
  assert.deepEqual(
    [...(await mirror()).values()].map(({ id }) => id),
    ["sb_4"],
  );
});

test("what is one worker's is not taken over or removed by another", async () => {
  const reading = await mirror();
  await bucket.put(entryKey("w1", "sb_1"), entry("w1", "sb_1"));
  await bucket.put(entryKey("w2", "sb_1"), entry("w2", "sb_1"));
  await reading.caughtUp();
  assert.equal(reading.get("sb_1")?.worker_id, "w1");
  await bucket.delete(entryKey("w2", "sb_1"));
  await reading.caughtUp();
  assert.equal(reading.get("sb_1")?.worker_id, "w1");
  await bucket.delete(entryKey("w1", "sb_1"));
  await reading.caughtUp();
  assert.equal(reading.get("sb_1"), undefined);
});

test("a gateway that begins while two workers claim one sandbox gives it to neither", async () => {
  await bucket.put(entryKey("w2", "sb_1"), entry("w2", "sb_1"));
  await bucket.put(entryKey("w1", "sb_1"), entry("w1", "sb_1"));
  const reading = await mirror();
  assert.equal(reading.get("sb_1"), undefined);
  await bucket.put(entryKey("w2", "sb_1"), entry("w2", "sb_1"));
  await reading.caughtUp();
  assert.equal(await reading.find("sb_1"), undefined);
});

test("entries of earlier versions are found under their worker", async () => {
  await bucket.put("sb_1", entry("w1", "sb_1"));
  await bucket.put("sb_2", entry("w1", "sb_2"));
  await bucket.delete("sb_2");
  const reading = await mirror();
  assert.equal(reading.get("sb_1")?.worker_id, "w1");
  assert.deepEqual(await bucket.keys(), [entryKey("w1", "sb_1")]);
});

test("what a worker has given away is the other one's, whoever says so first and whoever begins to watch when", async () => {
  const reading = await mirror();
  const [from, to] = [entryKey("w1", "sb_1"), entryKey("w2", "sb_1")];
  const held = { ...entry("w1", "sb_1"), status: "moving" } as const;
  await bucket.put(from, held);
  // A copy that the other one claims before it was given it counts for nothing.
  await bucket.put(to, entry("w2", "sb_1"));
  await reading.caughtUp();
  assert.deepEqual([reading.get("sb_1")?.worker_id, reading.get("sb_1")?.status], ["w1", "moving"]);
  await bucket.put(from, { ...held, moved_to: "w2" });
  await reading.caughtUp();
  assert.deepEqual([reading.get("sb_1")?.worker_id, reading.get("sb_1")?.status], ["w2", "running"]);
  assert.deepEqual([...(await mirror()).values()], [entry("w2", "sb_1")]);
  await bucket.put(from, { ...held, moved_to: "w2", handed_over: true });
  await bucket.put(to, { ...entry("w2", "sb_1"), name: "renamed" });
  await reading.caughtUp();
  assert.equal(reading.get("sb_1")?.name, "renamed");
  assert.deepEqual(
    reading.given().map(({ worker_id }) => worker_id),
    ["w1"],
  );
  await bucket.delete(from);
  await reading.caughtUp();
  assert.deepEqual([reading.get("sb_1")?.worker_id, reading.given()], ["w2", []]);
  await bucket.put(from, entry("w1", "sb_1"));
  await reading.caughtUp();
  assert.equal(reading.get("sb_1")?.worker_id, "w2", "its former worker cannot have it back by saying so");
});

test("what was given away and is not there yet is shown as on its way to its new worker, and not at all once it was there and is gone", async () => {
  const held = { ...entry("w1", "sb_1"), status: "moving", moved_to: "w2" } as const;
  await bucket.put(entryKey("w1", "sb_1"), held);
  const reading = await mirror();
  assert.deepEqual([reading.get("sb_1")?.worker_id, reading.get("sb_1")?.status], ["w2", "moving"]);
  await bucket.put(entryKey("w3", "sb_1"), entry("w3", "sb_1"));
  await reading.caughtUp();
  assert.equal(reading.get("sb_1")?.worker_id, "w2", "a third one does not get it");
  await bucket.delete(entryKey("w3", "sb_1"));
  await bucket.put(entryKey("w1", "sb_1"), { ...held, handed_over: true });
  await reading.caughtUp();
  assert.deepEqual([reading.get("sb_1"), [...(await mirror()).values()]], [undefined, []]);
});
