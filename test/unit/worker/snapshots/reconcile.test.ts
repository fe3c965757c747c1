/** Snapshots are looked through while others are being taken, with real records and a real nats-server. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { SnapshotEntry } from "../../../../shared/bus/entries.ts";
import { BucketWriter } from "../../../../shared/bus/kv.ts";
import { buckets } from "../../../../shared/bus/subjects.ts";
import { checker } from "../../../../shared/schemas/validate.ts";
import type { Claim } from "../../../../worker/claim.ts";
import type { WorkerContext } from "../../../../worker/context.ts";
import { reconcileSnapshots } from "../../../../worker/snapshots/reconcile.ts";
import { Snapshots } from "../../../../worker/snapshots/registry.ts";
import { OwnEntries } from "../../../../worker/store/entries.ts";
import { Store } from "../../../../worker/store/store.ts";
import { fixture } from "../../../helpers/fixture.ts";
import { temporaryFolder } from "../../../helpers/folder.ts";
import { quiet, startNats } from "../../../helpers/nats.ts";
import { snapshotEntry } from "../../../helpers/snapshot-entry.ts";

const check = checker(SnapshotEntry);
const nats = await fixture(startNats());
const bus = await nats.connect();
const { path } = fixture(temporaryFolder("snapshots"));
await BucketWriter.open(bus, buckets.snapshots, check);
const claim = { sure: async () => {} } as unknown as Claim;
const store = new Store(path);
const snapshots = new Snapshots(store, await OwnEntries.open(buckets.snapshots, check, { bus, workerId: "w", claim, log: quiet }));

const record = (): SnapshotEntry => snapshotEntry({ status: "creating", archived: "local" });

test("a snapshot that is completed while others are looked at stays", async (t) => {
  t.after(() => store.close());
  const [first, second] = [record(), record()];
  await snapshots.begin(first);
  await snapshots.complete(first.id, {});
  await snapshots.begin(second);
  const { entry } = snapshots;
  snapshots.entry = async (id) => {
    if (id === first.id) await snapshots.complete(second.id, {});
    return entry.call(snapshots, id);
  };
  await reconcileSnapshots({ snapshots, collectLayers: async () => {}, config: {}, log: quiet } as unknown as WorkerContext);
  assert.equal(snapshots.get(second.id)?.status, "ready");
  assert.deepEqual(
    store
      .snapshots()
      .map(({ id }) => id)
      .sort(),
    [first.id, second.id].sort(),
  );
  assert.equal((await entry.call(snapshots, second.id))?.status, "ready");
});
