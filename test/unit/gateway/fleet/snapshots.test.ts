/** The directory of snapshots in a gateway's memory, over a real nats-server. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { EntryMirror } from "../../../../gateway/fleet/entries.ts";
import { LayerCollector } from "../../../../gateway/fleet/layers.ts";
import { SnapshotDirectory } from "../../../../gateway/fleet/snapshots.ts";
import { SnapshotEntry } from "../../../../shared/bus/entries.ts";
import { BucketWriter } from "../../../../shared/bus/kv.ts";
import { buckets, entryKey } from "../../../../shared/bus/subjects.ts";
import { checker } from "../../../../shared/schemas/validate.ts";
import { newId } from "../../../../shared/util/ids.ts";
import { fixture } from "../../../helpers/fixture.ts";
import { quiet, startNats } from "../../../helpers/nats.ts";
import { snapshotEntry } from "../../../helpers/snapshot-entry.ts";

const check = checker(SnapshotEntry);

const nats = await fixture(startNats());
const worker = await BucketWriter.open(await nats.connect(), buckets.snapshots, check);
const bus = await nats.connect();
const snapshots = new SnapshotDirectory(await EntryMirror.watch(bus, buckets.snapshots, check, quiet), await LayerCollector.open(bus));

const entry = (account_id: string, changes: Partial<SnapshotEntry> = {}): SnapshotEntry => snapshotEntry({ account_id, ...changes });
const idsOf = (accountId: string): string[] => snapshots.ofAccount(accountId).map(({ id }) => id);

test("an account's snapshots come newest first, and follow what workers write and remove", async () => {
  const old = entry("a1", { created_at_ms: 1 });
  const young = entry("a1", { created_at_ms: 2 });
  const twin = entry("a1", { created_at_ms: 2 });
  for (const one of [young, old, twin, entry("a2")]) await worker.put(entryKey("w", one.id), one);
  await snapshots.caughtUp();
  assert.deepEqual(idsOf("a1"), [...[twin.id, young.id].sort().reverse(), old.id]);
  await worker.put(entryKey("w", old.id), { ...old, name: "changed" });
  await worker.delete(entryKey("w", young.id));
  await snapshots.caughtUp();
  assert.deepEqual(
    snapshots.ofAccount("a1").map(({ name }) => name),
    ["s", "changed"],
  );
  assert.deepEqual(idsOf("nobody"), []);
});

test("a snapshot is found by its owner only, also before the news of it has arrived", async () => {
  const mine = entry("b1");
  await worker.put(entryKey("w", mine.id), mine);
  assert.equal((await snapshots.find(mine.id, "b1")).id, mine.id);
  for (const [id, account] of [
    [mine.id, "b2"] as const,
    [newId("snapshot"), "b1"] as const,
    ["snap_x", "b1"] as const,
    [mine.source_sandbox_id, "b1"] as const,
  ])
    await assert.rejects(snapshots.find(id, account), { code: "not_found", message: `Snapshot not found: ${id}` });
});

test("what a worker replied counts at once, but never undoes what the directory has said since", () => {
  const taken = entry("c1");
  snapshots.note({ ...taken, status: "creating" });
  snapshots.note(taken);
  assert.deepEqual(snapshots.ofAccount("c1"), [taken]);
  snapshots.note({ ...taken, archived: "local" });
  assert.deepEqual(snapshots.ofAccount("c1"), [taken]);
  snapshots.noteGone(taken.id);
  assert.deepEqual(snapshots.ofAccount("c1"), []);
});

test("one that was deleted while its worker was away is seen by nobody, though its entry is there", async () => {
  const deleted = entry("d1", { status: "deleting", attempt_id: newId("reservation") });
  await worker.put(entryKey("w", deleted.id), deleted);
  await snapshots.caughtUp();
  assert.deepEqual(idsOf("d1"), []);
  await assert.rejects(snapshots.find(deleted.id, "d1"), { code: "not_found" });
  assert.equal(snapshots.byAttempt(deleted.attempt_id as string), undefined);
});

test("of what an attempt has made, the snapshot that is ready counts most, then one that may become so", () => {
  const attempt_id = newId("reservation");
  assert.equal(snapshots.byAttempt(attempt_id), undefined);
  const failed = entry("e1", { attempt_id, status: "error" });
  snapshots.note(failed);
  assert.equal(snapshots.byAttempt(attempt_id)?.id, failed.id);
  const creating = entry("e1", { attempt_id, status: "creating" });
  snapshots.note(creating);
  assert.equal(snapshots.byAttempt(attempt_id)?.id, creating.id);
  const ready = entry("e1", { attempt_id });
  snapshots.note(ready);
  assert.equal(snapshots.byAttempt(attempt_id)?.id, ready.id);
  assert.equal(snapshots.byAttempt(newId("reservation")), undefined);
});
