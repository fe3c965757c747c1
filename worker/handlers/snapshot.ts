/** The calls `snapshot`, `restore` and `deleteSnapshot`. */
import { SandgateError } from "../../shared/errors.ts";
import type { DeleteSnapshotCall, RestoreCall, SandboxEntry, SnapshotCall, SnapshotEntry } from "../../shared/schemas/messages.ts";
import type { WorkerContext } from "../context.ts";
import { entryOf } from "../directory.ts";
import { removeUnreferenced } from "../snapshots/collect.ts";
import { layersOf } from "../snapshots/image-layers.ts";
import { takeSnapshot } from "../snapshots/take.ts";
import { makeSandbox } from "./sandbox.ts";

/** Replies when the snapshot is durable and in the directory. */
export async function snapshot(context: WorkerContext, call: SnapshotCall): Promise<SnapshotEntry> {
  if (context.draining) throw new SandgateError("unavailable", "the worker is shutting down");
  context.sandboxes.owned(call.sandbox_id, call.account_id);
  return context.sandboxes.exclusive(call.sandbox_id, () => {
    // A repetition by another gateway, since the first one's died: it has waited here for what that one began.
    const taken = context.snapshots.byAttempt(call.attempt_id);
    if (taken) return Promise.resolve(taken);
    // It may have been deleted or lost while earlier changes of it were waited for.
    const sandbox = context.sandboxes.running(call.sandbox_id, call.account_id);
    return context.urgent.run(() => takeSnapshot(context, sandbox, call));
  });
}

/** Makes a sandbox from a snapshot; replies as `create` does. */
export async function restore(context: WorkerContext, call: RestoreCall): Promise<SandboxEntry> {
  const { manifest, image, ...rest } = call;
  const root = { base: manifest.base, layers: manifest.layers, ...(image === undefined ? {} : { over: image }) };
  const created = { ...rest, image: image ?? manifest.image, network: manifest.network };
  return entryOf((await makeSandbox(context, created, root)).record);
}

/** Removes a snapshot. One of a worker that is away is marked, and leaves the object store. */
export async function deleteSnapshot(context: WorkerContext, call: DeleteSnapshotCall): Promise<object> {
  const { snapshots, log } = context;
  const layerIds = snapshots.get(call.snapshot_id) ? await removeOwn(context, call) : await removeOfOther(context, call);
  // What stays in the object store costs space and nothing else; the client does not wait for it.
  void removeArchives(context, call.snapshot_id, layerIds).catch((err) =>
    log.warn({ err, snapshot: call.snapshot_id }, "archives of a snapshot could not be removed"),
  );
  log.info({ event: "snapshot_deleted", snapshot: call.snapshot_id, request_id: call.request_id }, "a snapshot was deleted");
  return {};
}

async function removeOwn({ snapshots, reserve, collectLayers }: WorkerContext, call: DeleteSnapshotCall): Promise<string[]> {
  const record = snapshots.owned(call.snapshot_id, call.account_id);
  if (record.status === "creating") throw new SandgateError("conflict", "the snapshot is still being taken");
  await reserve.spend(async () => {
    await snapshots.remove(record);
    await collectLayers();
  });
  return layersOf(record.manifest).map(({ id }) => id);
}

async function removeOfOther({ snapshots, workerId }: WorkerContext, call: DeleteSnapshotCall): Promise<string[]> {
  const entry = await snapshots.entry(call.snapshot_id);
  if (!entry || entry.account_id !== call.account_id || entry.status === "deleting" || entry.worker_id === workerId) {
    throw new SandgateError("not_found", `Snapshot not found: ${call.snapshot_id}`, { reason: "no_such_snapshot" });
  }
  await snapshots.markDeleted(entry.id);
  return layersOf(entry.manifest).map(({ id }) => id);
}

async function removeArchives({ replicator, archive, snapshots }: WorkerContext, snapshotId: string, layerIds: readonly string[]): Promise<void> {
  await replicator.forget(snapshotId);
  await removeUnreferenced(archive, layerIds, () => snapshots.layersInUse());
}
