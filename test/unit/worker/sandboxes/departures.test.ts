/** What a worker may write about a sandbox on its way to another one, over a real nats-server. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { SandboxEntry, WorkerClaim } from "../../../../shared/bus/entries.ts";
import { BucketWriter } from "../../../../shared/bus/kv.ts";
import { buckets, entryKey, peers } from "../../../../shared/bus/subjects.ts";
import { checker } from "../../../../shared/schemas/validate.ts";
import { Claim } from "../../../../worker/claim.ts";
import { Departures, GivenAway, isLeaving } from "../../../../worker/sandboxes/departures.ts";
import { entryOf } from "../../../../worker/sandboxes/registry.ts";
import { StallWatch } from "../../../../worker/stall.ts";
import { OwnEntries } from "../../../../worker/store/entries.ts";
import { fixture } from "../../../helpers/fixture.ts";
import { quiet, startNats } from "../../../helpers/nats.ts";
import { recordOf } from "../fixtures/records.ts";

const nats = await fixture(startNats());
const bus = await nats.connect();
await BucketWriter.open(bus, buckets.workers, checker(WorkerClaim));
const gateway = await BucketWriter.open(bus, buckets.sandboxes, checker(SandboxEntry));
const workerId = "w1";
const claim = await Claim.take(bus, { workerId, home: { id: "h", file: "f", bootId: "b" }, peer: peers.worker(workerId, "p"), stalls: new StallWatch() });
const directory = await OwnEntries.open(buckets.sandboxes, checker(SandboxEntry), { bus, workerId, claim, log: quiet });
const departures = new Departures(directory);

const move = { id: "mv_1", from: workerId, peer: "gateway.g" };
const running: SandboxEntry = { ...entryOf(recordOf("sb_1")), worker_id: workerId };
const held: SandboxEntry = { ...running, status: "moving", move };
const key = entryKey(workerId, "sb_1");

test("a sandbox on its way is told of as before, as long as it is this worker's", async () => {
  assert.ok(isLeaving(held) && !isLeaving(running) && !isLeaving({ ...held, worker_id: "w2" }));
  await departures.publish(running);
  await departures.publish(held);
  assert.deepEqual(await gateway.read(key), held);
  assert.equal(await departures.isGiven("sb_1"), false);
});

test("that the move was given up is not undone by telling of it again, so that nobody decides otherwise later", async () => {
  await gateway.put(key, { ...held, move: { ...move, given_up: true } });
  await departures.publish({ ...held, move: { ...move, layers: ["layer_1"] } });
  assert.deepEqual((await gateway.read(key))?.move, { ...move, layers: ["layer_1"], given_up: true });
  await departures.publish({ ...held, move: { ...move, id: "mv_2" } });
  assert.equal((await gateway.read(key))?.move?.given_up, undefined, "another move is not concerned");
  await departures.publish(running);
  assert.deepEqual(await gateway.read(key), running);
});

test("of what was given away nothing is said any more, and its entry stays until the other worker's is there", async () => {
  await gateway.put(key, { ...held, moved_to: "w2" });
  await assert.rejects(departures.publish(running), GivenAway);
  assert.equal(await departures.isGiven("sb_1"), true);
  assert.equal(departures.has("sb_1"), false);
  await departures.note("sb_1");
  assert.equal(departures.has("sb_1"), true);
  assert.equal((await gateway.read(key))?.moved_to, "w2");
  await gateway.put(key, { ...held, moved_to: "w2", handed_over: true });
  await departures.withdraw("sb_1");
  assert.equal(await gateway.read(key), undefined);
});
