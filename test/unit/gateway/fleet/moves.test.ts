/** Who decides whose a sandbox on its way is, over a real nats-server. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Claims } from "../../../../gateway/fleet/claims.ts";
import { Dispatcher } from "../../../../gateway/fleet/dispatch.ts";
import { EntryMirror } from "../../../../gateway/fleet/entries.ts";
import { LayerCollector } from "../../../../gateway/fleet/layers.ts";
import { Moves } from "../../../../gateway/fleet/moves.ts";
import { SnapshotDirectory } from "../../../../gateway/fleet/snapshots.ts";
import { SandboxEntry, SnapshotEntry } from "../../../../shared/bus/entries.ts";
import { BucketWriter } from "../../../../shared/bus/kv.ts";
import { makeLayerStore } from "../../../../shared/bus/storage.ts";
import { buckets, entryKey } from "../../../../shared/bus/subjects.ts";
import { loadConfig } from "../../../../shared/config.ts";
import { checker } from "../../../../shared/schemas/validate.ts";
import { fixture } from "../../../helpers/fixture.ts";
import { quiet, startNats } from "../../../helpers/nats.ts";

const nats = await fixture(startNats());
const { bus, peers } = await nats.member();
await makeLayerStore(bus, 2 ** 30);
const sandboxes = await EntryMirror.watch(bus, buckets.sandboxes, checker(SandboxEntry), quiet);
const claims = await Claims.watch(bus, quiet);
const layers = await LayerCollector.open(bus);
const snapshots = new SnapshotDirectory(await EntryMirror.watch(bus, buckets.snapshots, checker(SnapshotEntry), quiet), layers);
const moves = new Moves({ sandboxes, snapshots, workers: new Dispatcher(bus, peers, claims, loadConfig({})), claims, peer: peers.peer, log: quiet });

const size = { cpu: 1, memory: 512, storage: 5, network: "none", image: "default" } as const;
const move = { id: "mv_1", from: "w1", peer: "gateway.g", to: "w2" };
const held: SandboxEntry = { id: "sb_1", name: "n", account_id: "a", key_id: "k", worker_id: "w1", status: "moving", created_at_ms: 1, ...size, move };
const asked = { sandbox_id: "sb_1", move_id: "mv_1", from: "w1" };
const open = { code: "unavailable", message: /on its way to another worker/ };

/** Stores the entry, and tells the revision at which it is. */
async function stored(entry: SandboxEntry): Promise<number> {
  await sandboxes.change(entry, () => entry);
  return (await sandboxes.version(entry))?.revision ?? assert.fail();
}

test("a worker that asks first makes the decision impossible, also for a gateway that stood still meanwhile", async () => {
  assert.deepEqual(await moves.settle(asked, "w2"), { is_moved: false }, "nothing is known of it");
  await (await BucketWriter.open(bus, buckets.sandboxes, checker(SandboxEntry))).put(entryKey("w1", "sb_1"), held);
  const revision = await stored(held);
  assert.deepEqual(await moves.settle(asked, "w2"), { is_moved: false });
  assert.equal(await sandboxes.replace(held, { ...held, moved_to: "w2" }, revision), false);
  assert.equal((await sandboxes.version(held))?.value.move?.given_up, true);
  assert.deepEqual(await moves.settle(asked, "w2"), { is_moved: false }, "as often as it asks");
});

test("what was decided stays so, for the worker that has it and for all others", async () => {
  const revision = await stored(held);
  assert.equal(await sandboxes.replace(held, { ...held, moved_to: "w2" }, revision), true);
  assert.deepEqual(await moves.settle(asked, "w2"), { is_moved: true });
  assert.deepEqual(await moves.settle(asked, "w3"), { is_moved: false });
  assert.deepEqual(await moves.settle({ ...asked, move_id: "mv_2" }, "w2"), { is_moved: false });
  assert.equal((await sandboxes.version(held))?.value.moved_to, "w2");
});

test("a worker that is not asked to take a sandbox cannot have its move given up", async () => {
  const { to: _to, ...early } = move;
  for (const entry of [held, { ...held, move: early }]) {
    const revision = await stored(entry);
    await assert.rejects(moves.settle(asked, "w3"), open);
    await assert.rejects(moves.settle({ ...asked, move_id: "mv_0" }, "w3"), open);
    assert.equal((await sandboxes.version(held))?.revision, revision);
  }
});

test("that a sandbox is not on its way any more is told when a write has shown it", async () => {
  const { move: _move, ...back } = held;
  const revision = await stored({ ...back, status: "running" });
  assert.deepEqual(await moves.settle(asked, "w2"), { is_moved: false });
  const now = await sandboxes.version(held);
  assert.ok(now && now.revision > revision);
  assert.equal(now.value.status, "running");
});
