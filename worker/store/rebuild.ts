/** Rebuilds the damaged records of a worker from its entries in the directory. */

import type { SandboxEntry, SnapshotEntry } from "../../shared/bus/entries.ts";
import type { Logger } from "../../shared/util/log.ts";
import type { OwnEntries } from "./entries.ts";
import type { Store } from "./store.ts";

interface Parts {
  readonly store: Store;
  readonly sandboxes: OwnEntries<SandboxEntry>;
  readonly snapshots: OwnEntries<SnapshotEntry>;
  readonly log: Logger;
}

/** The directory lists every acknowledged sandbox and snapshot, so none of these is lost. */
export async function rebuildRecords({ store, sandboxes, snapshots, log }: Parts): Promise<void> {
  const found = { sandboxes: 0, snapshots: 0 };
  for (const entry of await all(sandboxes)) {
    if (entry.moved_to !== undefined) continue; // Another worker has it.
    if (entry.status === "creating" && !store.hasFactsOf(entry.id)) continue; // Nobody was told of it.
    const facts = store.factsOf(entry.id);
    if (!facts) log.error({ event: "facts_broken", sandbox: entry.id }, "a sandbox has lost its environment variables, and what it is started again from");
    // One that is still being created may have been acknowledged.
    await store.putSandbox({ ...entry, ...(facts ?? { env_vars: {} }), acknowledged: true });
    found.sandboxes++;
  }
  for (const entry of await all(snapshots)) {
    await store.putSnapshot(entry);
    found.snapshots++;
  }
  log.warn({ event: "store_rebuilt", ...found }, "the records of sandboxes and snapshots were rebuilt from the directory");
}

async function all<T>(entries: OwnEntries<T>): Promise<T[]> {
  const found: T[] = [];
  for (const id of await entries.ids()) {
    const entry = await entries.read(id);
    if (entry) found.push(entry);
  }
  return found;
}
