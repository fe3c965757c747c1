/** What is told of sandboxes, also on their way, when the directory could not be reached or is full, over a real nats-server and a real store. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { jetstreamManager } from "@nats-io/jetstream";
import { SandboxEntry, WorkerClaim } from "../../../../shared/bus/entries.ts";
import { BucketWriter } from "../../../../shared/bus/kv.ts";
import { bucketStream, buckets, entryKey, peers } from "../../../../shared/bus/subjects.ts";
import { checker } from "../../../../shared/schemas/validate.ts";
import { Claim } from "../../../../worker/claim.ts";
import type { WorkerContext } from "../../../../worker/context.ts";
import type { SandboxLifecycle } from "../../../../worker/sandboxes/lifecycle.ts";
import { confirm, endEarlier } from "../../../../worker/sandboxes/moves.ts";
import { entryOf, Sandboxes } from "../../../../worker/sandboxes/registry.ts";
import { StallWatch } from "../../../../worker/stall.ts";
import { OwnEntries } from "../../../../worker/store/entries.ts";
import { Store } from "../../../../worker/store/store.ts";
import { atEnd, fixture } from "../../../helpers/fixture.ts";
import { temporaryFolder } from "../../../helpers/folder.ts";
import { quiet, startNats } from "../../../helpers/nats.ts";
import { until } from "../../../helpers/until.ts";
import { recordOf } from "../fixtures/records.ts";

const nats = await fixture(startNats());
const bus = await nats.connect();
await BucketWriter.open(bus, buckets.workers, checker(WorkerClaim));
const gateway = await BucketWriter.open(bus, buckets.sandboxes, checker(SandboxEntry));
const workerId = "w2";
const claim = await Claim.take(bus, { workerId, home: { id: "h", file: "f", bootId: "b" }, peer: peers.worker(workerId, "p"), stalls: new StallWatch() });
const directory = await OwnEntries.open(buckets.sandboxes, checker(SandboxEntry), { bus, workerId, claim, log: quiet });
const store = new Store(join(fixture(temporaryFolder("arrivals")).path, "lmdb"));
atEnd(() => store.close());
const sandboxes = new Sandboxes(store, directory);
/** Nothing has memory here, so nothing is started. */
const lifecycle = {} as SandboxLifecycle;

test("a copy whose confirmation the directory did not store still waits for it, and the next one is not taken for a repetition", async () => {
  const move = { id: "mv_1", from: "w1", peer: "gateway.g" };
  const { sandbox, recorded } = sandboxes.add({ ...recordOf("sb_1"), worker_id: workerId, status: "creating", acknowledged: false, move });
  await recorded;
  await sandboxes.arrive(sandbox, {});
  const confirmed = (): Promise<void> => confirm({ sandboxes, lifecycle, log: quiet }, sandbox, move.id);
  const entry = (): Promise<SandboxEntry | undefined> => gateway.read(entryKey(workerId, "sb_1"));

  await nats.server.kill9();
  await assert.rejects(confirmed(), { code: "unavailable" });
  await assert.rejects(confirmed(), { code: "unavailable" });
  assert.deepEqual([sandbox.record.status, sandbox.record.move, sandbox.record.acknowledged], ["moving", move, false]);

  await nats.server.start();
  await until("the bus is back", () => bus.connected);
  assert.equal(await entry(), undefined);
  await confirmed();
  assert.equal((await entry())?.status, "running");
  const [stored] = store.sandboxes();
  assert.deepEqual([stored?.status, stored?.move, stored?.acknowledged], ["running", undefined, true]);
  await confirmed();
});

test("a sandbox that another worker has does not keep the directory from being brought up to date with the others", async () => {
  const move = { id: "mv_2", from: workerId, peer: "gateway.g" };
  const given = sandboxes.add({ ...recordOf("sb_2"), worker_id: workerId, status: "moving", move });
  const kept = sandboxes.add({ ...recordOf("sb_3"), worker_id: workerId });
  await Promise.all([given.recorded, kept.recorded]);
  await sandboxes.announce(given.sandbox);
  const entry = (id: string): Promise<SandboxEntry | undefined> => gateway.read(entryKey(workerId, id));
  const held = (await entry("sb_2")) ?? assert.fail();
  await gateway.put(entryKey(workerId, "sb_2"), { ...held, moved_to: "w3" });
  await sandboxes.synchronise();
  assert.equal((await entry("sb_2"))?.moved_to, "w3");
  assert.equal((await entry("sb_3"))?.status, "running");
});

test("a sandbox comes again when its copy from before is another worker's and removed, and not while that is open", async () => {
  const ended = (): Promise<void> => endEarlier({ sandboxes } as WorkerContext, "sb_5");
  const key = entryKey(workerId, "sb_5");
  const gone: SandboxEntry = { ...entryOf(recordOf("sb_5")), worker_id: workerId, status: "moving", moved_to: "w3" };
  await ended();
  await gateway.put(key, gone);
  await assert.rejects(ended(), { code: "unavailable", message: /earlier copy/ });
  assert.equal((await gateway.read(key))?.moved_to, "w3", "by it gateways find the sandbox until its new worker has told of it");
  await gateway.put(key, { ...gone, handed_over: true });
  await ended();
  assert.equal(await gateway.read(key), undefined);

  // One that is this worker's is nobody else's to bring.
  const { sandbox, recorded } = sandboxes.add({ ...recordOf("sb_5"), worker_id: workerId });
  await recorded;
  await assert.rejects(ended(), { code: "unavailable", message: /earlier copy/ });
  await sandboxes.remove(sandbox);
});

test("a deletion that has begun is not told as refused when the directory has no room for the news, and is noted when it has", async () => {
  const { sandbox, recorded } = sandboxes.add({ ...recordOf("sb_4"), worker_id: workerId });
  await recorded;
  await sandboxes.announce(sandbox);
  const { streams } = await jetstreamManager(bus.connection);
  const { config } = await streams.info(bucketStream(buckets.sandboxes));
  await streams.update(config.name, { ...config, max_bytes: 1 });
  await assert.rejects(sandboxes.announce(sandbox), { code: "insufficient_storage" });
  await assert.rejects(sandboxes.apply(sandbox, "delete"), { code: "unavailable" });
  assert.equal(sandbox.record.status, "deleting");
  await streams.update(config.name, config);
  await sandboxes.apply(sandbox, "delete");
  assert.equal((await gateway.read(entryKey(workerId, "sb_4")))?.status, "deleting");
  await sandboxes.remove(sandbox);
  assert.equal(await gateway.read(entryKey(workerId, "sb_4")), undefined);
});
