/** Claims to a worker's id, over a real nats-server. */
import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import { Claims } from "../../../gateway/fleet/claims.ts";
import { SandboxEntry, WorkerClaim } from "../../../shared/bus/entries.ts";
import { BucketWriter } from "../../../shared/bus/kv.ts";
import type { Bus } from "../../../shared/bus/nats.ts";
import { buckets, peers } from "../../../shared/bus/subjects.ts";
import { checker } from "../../../shared/schemas/validate.ts";
import { newId } from "../../../shared/util/ids.ts";
import { Claim, ClaimRefused, type Loss, WorkerForgotten } from "../../../worker/claim.ts";
import { entryOf } from "../../../worker/sandboxes/registry.ts";
import { StallWatch } from "../../../worker/stall.ts";
import { OwnEntries } from "../../../worker/store/entries.ts";
import { quiet, startNats, type TestNats } from "../../helpers/nats.ts";
import { until } from "../../helpers/until.ts";
import { recordOf } from "./fixtures/records.ts";

let nats: TestNats;
let bucket: BucketWriter<WorkerClaim>;
let claims: Claims;
beforeEach(async () => {
  nats = await startNats();
  const bus = await nats.connect();
  bucket = await BucketWriter.open(bus, buckets.workers, checker(WorkerClaim));
  claims = await Claims.watch(bus, quiet);
});
afterEach(async () => {
  claims?.stop();
  await nats?.[Symbol.asyncDispose]();
});

/** A process on a machine, in one of the machine's starts. */
async function take(home: string, bus?: Bus, bootId = "boot-1"): Promise<Claim> {
  const claimant = { workerId: "w1", home: { id: home, file: `/data/${home}`, bootId }, peer: peers.worker("w1", newId("worker")), stalls: new StallWatch() };
  return Claim.take(bus ?? (await nats.connect()), claimant);
}

const forget = (): Promise<void> =>
  claims.forget("w1", () => {
    throw new Error("there is a newer claim");
  });

/** How a claim is lost, once its process has looked. */
async function lossOf(claim: Claim): Promise<Loss> {
  const lost = Promise.withResolvers<Loss>();
  const stop = claim.watch(quiet, lost.resolve);
  return lost.promise.finally(stop);
}

test("each start on the same machine raises the epoch, and the process before it learns that it was replaced", async () => {
  const first = await take("a");
  const second = await take("a");
  assert.deepEqual([first.epoch, second.epoch], [1, 2]);
  const { why, isForgotten } = await lossOf(first);
  assert.match(why, /^another process has taken the place of this worker \(w1\)/);
  assert.equal(isForgotten, false);
  await second.sure();
  assert.equal((await bucket.read("w1"))?.home, "a");
});

test("a claim from before, as a restored backup has it, takes nothing from the process that is there", async () => {
  await take("a");
  const former = await bucket.read("w1");
  assert.ok(former);
  const bus = await nats.connect();
  const second = await take("a", bus);
  await bucket.change("w1", () => former);
  const stop = second.watch(quiet, ({ why }) => assert.fail(why));
  await until("its own claim is there again", async () => (await bucket.read("w1"))?.epoch === 2);
  stop();
  await second.sure();
  assert.equal((await take("a")).epoch, 3);
});

test("two processes that start at the same time get different epochs", async () => {
  const taken = await Promise.all(Array.from({ length: 5 }, () => take("a")));
  assert.deepEqual(taken.map(({ epoch }) => epoch).sort(), [1, 2, 3, 4, 5]);
});

test("another machine is refused and told what to do, and the one that has the id goes on", async () => {
  const first = await take("a");
  await assert.rejects(take("b"), (error: Error) => {
    assert.ok(error instanceof ClaimRefused);
    assert.match(error.message, /^the worker id w1 is used by another machine, since 2.*Z\..*"sandgate-admin forget w1".* write a into \/data\/b$/);
    return true;
  });
  await first.sure();
  assert.equal((await bucket.read("w1"))?.epoch, 1);
});

const onCopy = (bootId: string): Promise<Claim> => take("a", undefined, bootId);

test("a copy of a machine is refused while the machine's process lives, which goes on", async () => {
  const first = await take("a");
  const stop = first.watch(quiet, ({ why }) => assert.fail(why));
  await assert.rejects(onCopy("boot-2"), (error: Error) => {
    assert.ok(error instanceof ClaimRefused);
    assert.match(error.message, /^the worker id w1 is used by a machine that runs, since 2.*Z, and whose \/data\/a this one has a copy of\./);
    return true;
  });
  await first.sure();
  const { epoch, boot, asked_at_ms } = (await bucket.read("w1")) as WorkerClaim;
  assert.deepEqual([epoch, boot, asked_at_ms], [1, "boot-1", undefined]);
  // A further process of its own machine need not ask.
  const second = take("a");
  stop();
  assert.equal((await second).epoch, 2);
});

test("after a start of the machine, its process gets the id, whether the one before was killed or has stopped", async () => {
  await take("a");
  const second = await onCopy("boot-2");
  assert.equal(second.epoch, 2);
  await second.leave();
  assert.equal((await onCopy("boot-3")).epoch, 3);
});

test("of several copies of a machine that is gone, one gets the id", async () => {
  await take("a");
  const started = ["boot-2", "boot-3", "boot-4"].map(async (bootId) => {
    const claim = await onCopy(bootId);
    return claim.watch(quiet, ({ why }) => assert.fail(why));
  });
  const ends = await Promise.allSettled(started);
  for (const end of ends) {
    if (end.status === "fulfilled") end.value();
    else assert.ok(end.reason instanceof ClaimRefused, end.reason);
  }
  assert.equal(ends.filter(({ status }) => status === "fulfilled").length, 1);
  assert.equal((await bucket.read("w1"))?.epoch, 2);
});

test("a forgotten worker stops, cannot start again on its machine, and leaves its id to another", async () => {
  const first = await take("a");
  await claims.caughtUp();
  assert.ok(claims.has("w1") && claims.admits({ id: "w1", epoch: 1 }));
  await forget();
  assert.deepEqual([claims.has("w1"), claims.admits({ id: "w1", epoch: 1 }), claims.admits({ id: "w1" })], [false, false, false]);
  const { why, isForgotten } = await lossOf(first);
  assert.match(why, /^an operator has forgotten this worker \(w1\) on 2/);
  assert.equal(isForgotten, true);
  const refused = take("a");
  await assert.rejects(refused, WorkerForgotten);
  await assert.rejects(refused, /an operator has forgotten this worker \(w1\) on 2.*its sandboxes were given up/);
  const other = await take("b");
  assert.equal(other.epoch, 2);
  await claims.caughtUp();
  assert.deepEqual([claims.admits({ id: "w1", epoch: 1 }), claims.admits({ id: "w1", epoch: 2 })], [false, true]);
  await assert.rejects(take("a"), /used by another machine/);
});

test("a worker of a version without claims is admitted until it is forgotten", async () => {
  assert.ok(claims.admits({ id: "w1" }));
  await forget();
  assert.equal(claims.admits({ id: "w1" }), false);
  assert.equal((await bucket.read("w1"))?.epoch, 0);
});

test("an id that was claimed meanwhile is not forgotten", async () => {
  await take("a");
  await claims.caughtUp();
  claims.stop();
  await take("a");
  await assert.rejects(forget(), /there is a newer claim/);
  assert.equal((await bucket.read("w1"))?.forgotten_at_ms, undefined);
});

test("after an outage a process is sure of its id only when it has read its claim", async () => {
  const bus = await nats.connect();
  const claim = await take("a", bus);
  await nats.server.kill9();
  await until("the loss", () => !bus.connected);
  await assert.rejects(claim.sure(), { code: "unavailable" });
  await nats.server.start();
  await until("the connection", () => bus.connected);
  await claim.sure();
  await take("a");
  await claim.sure(); // Nothing has happened that would make it doubt; its next look tells it.
  assert.match((await lossOf(claim)).why, /another process/);
});

test("a claim that the storage has lost is made again as it was", async () => {
  await take("a");
  const claim = await take("a");
  await bucket.delete("w1");
  const stop = claim.watch(quiet, ({ why }) => assert.fail(why));
  await until("the claim", async () => (await bucket.read("w1"))?.epoch === 2);
  stop();
});

test("a process that stood still carries out and writes nothing until it has read its claim", async () => {
  const bus = await nats.connect();
  const check = checker(SandboxEntry);
  await BucketWriter.open(bus, buckets.sandboxes, check);
  const claim = await take("a", bus);
  const entries = await OwnEntries.open(buckets.sandboxes, check, { bus, claim, workerId: "w1", log: quiet });
  const entry = entryOf(recordOf("sb_1"));
  await entries.put("sb_1", entry);
  standStill();
  await claim.sure();
  await take("a");
  standStill();
  await assert.rejects(claim.sure(), { code: "unavailable" });
  await assert.rejects(entries.put("sb_1", { ...entry, status: "error" }), { code: "unavailable" });
  await assert.rejects(entries.delete("sb_1"), { code: "unavailable" });
  assert.equal((await entries.read("sb_1"))?.status, "running");
});

/** Does nothing for longer than any work of one turn of the event loop. */
function standStill(): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_000);
}
