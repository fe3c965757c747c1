/** Makes snapshot records, layers, the directory and frozen sandboxes agree after a start. */
import type { WorkerContext } from "../context.ts";
import { restoredFrom } from "../restored.ts";

/** Thaws sandboxes that the previous process had frozen when it died. Must run before the sandboxes are reconciled. */
export async function thawSources({ sandboxes, snapshots, podman, oci, log }: WorkerContext): Promise<void> {
  const sources = new Set([...snapshots.all()].filter(({ status }) => status === "creating").map((record) => record.source_sandbox_id));
  if (sources.size === 0) return;
  for (const { sandboxId, containerId } of await podman.list()) {
    if (!sources.has(sandboxId) || !sandboxes.knows(sandboxId)) continue;
    await oci
      .thawAbandoned(containerId, sandboxes.isolationOf(sandboxId))
      .catch((err) => log.error({ err, sandbox: sandboxId }, "a frozen sandbox could not be thawed"));
  }
}

/** Drops incomplete snapshots, finishes deletions, updates the directory, and resumes archiving. */
export async function reconcileSnapshots(context: WorkerContext): Promise<void> {
  for (const { id } of [...context.snapshots.all()]) await settle(context, id);
  if (restoredFrom(context.config) !== undefined) await removeLost(context);
  await context.snapshots.withdrawUnknown();
  await context.collectLayers();
  for (const record of context.snapshots.all()) if (record.archived === "pending") context.replicator.add(record);
}

/** A snapshot whose files were not in the backup, and are not here either, can never be restored. */
async function removeLost({ snapshots, layers, log }: WorkerContext): Promise<void> {
  for (const { id, status, archived, manifest } of [...snapshots.all()]) {
    if (status !== "ready" || archived === "done" || manifest.layers.every((layer) => layers.has(layer.id))) continue;
    log.warn({ event: "snapshot_lost", snapshot: id }, "a snapshot is removed: its files were not in the object store when the backup was made");
    await snapshots.remove(id);
  }
}

/** By what there is when its turn comes: one that was being taken when the others were looked at may be complete, or gone. */
async function settle({ snapshots, log }: WorkerContext, id: string): Promise<void> {
  const record = snapshots.get(id);
  if (!record || snapshots.isBeingTaken(id)) return;
  if (record.status === "creating") {
    log.warn({ event: "snapshot_dropped", snapshot: id }, "an incomplete snapshot is removed");
    return snapshots.discard(id);
  }
  if (record.temporary && record.status === "ready") return;
  const known = await snapshots.entry(id);
  const now = snapshots.get(id);
  if (!now) return;
  // The gateways mark the entry of a snapshot that was deleted while its worker was away.
  if (now.status === "deleting" || known?.status === "deleting") return snapshots.remove(id);
  if (!known) await snapshots.publish(now);
}
