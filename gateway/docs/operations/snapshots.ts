/** Calls about snapshots. */
import { DeletedAll, SandboxInfo } from "../../../shared/schemas/sandboxes.ts";
import { Clone, DeletedSnapshot, SnapshotInfo, SnapshotPage } from "../../../shared/schemas/snapshots.ts";
import { ids, pageOf, sandbox, snapshot, times } from "../examples.ts";
import { noDisk, noImageHad, notRunning, sandboxLimit } from "../failures.ts";
import { made, ok, operationsOf } from "../operation.ts";

const operation = operationsOf("Snapshots");

export const take = operation({
  name: "createSnapshot",
  summary: "Take a snapshot",
  description:
    "Saves the files and settings of a running sandbox, which keeps running. Its processes are paused while the files are copied, unless `quick` is true.",
  of: "sandbox",
  body: { name: snapshot.name, quick: false },
  once: true,
  success: made("The snapshot, ready and durable.", SnapshotInfo, snapshot),
  failures: { ...notRunning, ...noDisk },
});

export const clone = operation({
  name: "cloneSandbox",
  summary: "Clone a sandbox",
  description:
    "Takes a snapshot and creates a sandbox from it. The storage size is inherited. With `image`, the files that the source has changed are laid over the new image.",
  of: "sandbox",
  body: { name: "nightly-report-2", snapshot_name: snapshot.name, resources: { memory: 1024 } },
  once: true,
  success: made("The new sandbox, and the snapshot it was created from.", Clone, {
    sandbox: { ...sandbox, id: ids.clone, name: "nightly-report-2", memory: 1024, created_at: times.now },
    snapshot,
  }),
  failures: {
    ...notRunning,
    ...noDisk,
    ...sandboxLimit,
    ...noImageHad,
  },
});

export const list = operation({
  name: "listSnapshots",
  summary: "List snapshots",
  description: "Snapshots that are ready, newest first.",
  query: { page: 1, page_size: 20 },
  success: ok("One page of snapshots.", SnapshotPage, pageOf(snapshot)),
});

export const get = operation({
  name: "getSnapshot",
  summary: "Get one snapshot",
  of: "snapshot",
  success: ok("The snapshot, in any state.", SnapshotInfo, snapshot),
});

export const restore = operation({
  name: "restoreSnapshot",
  summary: "Restore a snapshot into a new sandbox",
  description:
    "The new sandbox has the files of the snapshot, and its settings unless the call overrides them; `env_vars` are added to those of the snapshot. No process is running in it.",
  of: "snapshot",
  body: { name: "after-the-upgrade", resources: { memory: 1024 }, env_vars: { GREETING: "hello again" } },
  once: true,
  success: made("The new sandbox.", SandboxInfo, { ...sandbox, id: ids.clone, name: "after-the-upgrade", memory: 1024, created_at: times.now }),
  failures: {
    ...noDisk,
    ...sandboxLimit,
    conflict: { when: "The snapshot is not ready.", message: 'the snapshot is not ready, it is in state "creating"' },
    unprocessable: {
      when: "The image is not available, or the storage is smaller than what the snapshot needs.",
      message: "storage of 1 GB is less than the 2.3 GB that the snapshot uses",
      reason: "storage_too_small",
    },
  },
});

export const remove = operation({
  name: "deleteSnapshot",
  summary: "Delete a snapshot",
  description: "Sandboxes created from it are not affected.",
  of: "snapshot",
  success: ok("The snapshot is deleted.", DeletedSnapshot, { message: "Snapshot deleted", name: snapshot.name, deferred: false }),
  failures: { conflict: { when: "The snapshot is still being taken.", message: "the snapshot is still being taken" } },
});

export const removeAll = operation({
  name: "deleteAllSnapshots",
  summary: "Delete all snapshots",
  description: "Deletes all snapshots of the account. `errors` lists those that could not be deleted.",
  success: ok("The deleted snapshots.", DeletedAll, { deleted_count: 1, deleted_ids: [ids.snapshot], message: "1 snapshot deleted" }),
});
