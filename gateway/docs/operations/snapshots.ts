/** Calls about snapshots. */
import { DeletedAll, SandboxInfo } from "../../../shared/schemas/sandboxes.ts";
import { Clone, DeletedSnapshot, Fork, SnapshotInfo, SnapshotPage } from "../../../shared/schemas/snapshots.ts";
import { ids, pageOf, sandbox, snapshot, times } from "../examples.ts";
import { noDisk, noImageHad, noMemory, notRunning, sandboxLimit } from "../failures.ts";
import { made, ok, operationsOf } from "../operation.ts";

const operation = operationsOf("Snapshots");

export const take = operation({
  name: "createSnapshot",
  summary: "Take a snapshot",
  description:
    "Saves the files and settings of a running sandbox, which keeps running, and with `memory` its processes. They are paused while the files are copied, unless `quick` is true.",
  of: "sandbox",
  body: { name: snapshot.name, quick: false, memory: "prefer" },
  once: true,
  success: made("The snapshot, ready and durable.", SnapshotInfo, snapshot),
  failures: { ...notRunning, ...noDisk, ...noMemory },
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

export const fork = operation({
  name: "forkSandbox",
  summary: "Make many copies of a sandbox",
  description:
    "Takes one snapshot of a running sandbox as it is now, creates `count` sandboxes from it, and removes it again. Either there is room for all copies, or nothing is done; after that, each copy succeeds or fails on its own. The storage size is inherited. The call counts as one request, and each copy as a sandbox.",
  of: "sandbox",
  body: { count: 2, name: "attempt", memory: "prefer" },
  once: true,
  success: made("The copies, in the order of their numbers.", Fork, {
    data: [
      { sandbox: { ...sandbox, id: ids.clone, name: "attempt-1", created_at: times.now, memory_restored: true } },
      { error: { code: "unavailable", message: "the worker has too little free memory for another sandbox", request_id: ids.request } },
    ],
  }),
  failures: {
    ...notRunning,
    ...noDisk,
    ...sandboxLimit,
    ...noMemory,
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
    "The new sandbox has the files of the snapshot, and its settings unless the call overrides them; `env_vars` are added to those of the snapshot. If the snapshot includes memory, its processes continue in the new sandbox, unless `image`, `env_vars`, another storage or less memory is given, or the worker that took it cannot take the sandbox and another one has a different CPU model, kernel or CRIU; `memory_restored` and `memory_reason` tell. Otherwise no process is running in it.",
  of: "snapshot",
  body: { name: "after-the-upgrade", resources: { memory: 1024 }, env_vars: { GREETING: "hello again" }, memory: "prefer" },
  once: true,
  success: made("The new sandbox.", SandboxInfo, {
    ...sandbox,
    id: ids.clone,
    name: "after-the-upgrade",
    memory: 1024,
    created_at: times.now,
    memory_reason: "processes cannot continue with other env_vars",
  }),
  failures: {
    ...noDisk,
    ...sandboxLimit,
    conflict: { when: "The snapshot is not ready.", message: 'the snapshot is not ready, it is in state "creating"' },
    unprocessable: {
      when: "The image is not available, the storage is smaller than what the snapshot needs, or memory is required and cannot be restored.",
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
