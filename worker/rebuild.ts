/** Makes the records of a worker anew from its entries in the directory, when its own were damaged. */
import type { BucketWriter } from "../shared/kv.ts";
import type { Logger } from "../shared/log.ts";
import type { SandboxEntry, SnapshotEntry } from "../shared/schemas/messages.ts";
import type { Store } from "./store.ts";

interface Parts {
  readonly store: Store;
  readonly sandboxes: BucketWriter<SandboxEntry>;
  readonly snapshots: BucketWriter<SnapshotEntry>;
  readonly workerId: string;
  readonly log: Logger;
}

/** Whoever was promised a sandbox or a snapshot finds it in the directory, so nothing of these is forgotten. */
export async function rebuildRecords({ store, sandboxes, snapshots, workerId, log }: Parts): Promise<void> {
  const found = { sandboxes: 0, snapshots: 0 };
  for (const entry of await ownEntries(sandboxes, workerId)) {
    const facts = store.factsOf(entry.id);
    // One that is still in the making may have been promised.
    await store.putSandbox({ ...entry, ...facts, acknowledged: true });
    found.sandboxes++;
  }
  for (const entry of await ownEntries(snapshots, workerId)) {
    await store.putSnapshot(entry);
    found.snapshots++;
  }
  log.warn({ event: "store_rebuilt", ...found }, "the records of sandboxes and snapshots were made anew from the directory");
}

async function ownEntries<T extends { worker_id: string }>(bucket: BucketWriter<T>, workerId: string): Promise<T[]> {
  const own: T[] = [];
  for (const id of await bucket.keys()) {
    const entry = await bucket.read(id);
    if (entry?.worker_id === workerId) own.push(entry);
  }
  return own;
}
