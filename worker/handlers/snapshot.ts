/** The calls `snapshot`, `restore` and `deleteSnapshot`. */

import type { Request } from "../../shared/bus/contract/contract.ts";
import type { SandboxEntry, SnapshotEntry } from "../../shared/bus/entries.ts";
import { baseLayerOf, fetchedLayerId } from "../../shared/bus/snapshot-layers.ts";
import { SandgateError } from "../../shared/errors.ts";
import type { WorkerContext } from "../context.ts";
import { refuseUnlessServing } from "../phase.ts";
import { entryOf } from "../sandboxes/registry.ts";
import { planRestore } from "../snapshots/memory.ts";
import { takeSnapshot } from "../snapshots/take.ts";
import type { RootSource } from "../store/records.ts";
import { makeSandbox } from "./sandbox.ts";

/** Replies when the snapshot is durable and in the directory. */
export async function snapshot(context: WorkerContext, call: Request<"snapshot">): Promise<SnapshotEntry> {
  refuseUnlessServing(context);
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
export async function restore(context: WorkerContext, call: Request<"restore">): Promise<SandboxEntry> {
  const { manifest, image, worker_id: _worker, ...rest } = call;
  const root = { ...rootFrom(context, call), ...(image === undefined ? {} : { over: image }) };
  const created = { ...rest, image: image ?? manifest.image, network: manifest.network };
  return entryOf((await makeSandbox(context, created, { root, ...planRestore(context, call) })).record);
}

/** What the files of a snapshot are made from here: its layers, or what its worker has stored of them. */
export function rootFrom(
  { workerId, layers: here }: Pick<WorkerContext, "workerId" | "layers">,
  { worker_id, manifest }: Pick<SnapshotEntry, "worker_id" | "manifest">,
): RootSource {
  const isOwn = worker_id === workerId;
  const isHere = isOwn && manifest.layers.every(({ id }) => here.has(id));
  const stored = isHere ? manifest.layers : (manifest.stored ?? manifest.layers);
  const layers = isOwn ? stored : stored.map((layer) => ({ ...layer, id: fetchedLayerId(layer.id, worker_id) }));
  const from = { workerId: worker_id, layers: stored.map(({ id }) => id), base: baseLayerOf(manifest.base) };
  return { base: isOwn ? manifest.base : { ...manifest.base, layer: fetchedLayerId(from.base, worker_id) }, layers, from };
}

/** Removes a snapshot of this worker. The gateway removes its layers from the object store when this is done. */
export async function deleteSnapshot({ snapshots, reserve, replicator, collectLayers, log }: WorkerContext, call: Request<"deleteSnapshot">): Promise<object> {
  const record = snapshots.owned(call.snapshot_id, call.account_id);
  if (record.status === "creating") throw new SandgateError("conflict", "the snapshot is still being taken");
  await reserve.spend(() => snapshots.remove(record.id));
  await collectLayers().catch((err) => log.error({ err, snapshot: record.id }, "unused layers could not be removed"));
  await replicator.forget(call.snapshot_id);
  log.info({ event: "snapshot_deleted", snapshot: call.snapshot_id }, "a snapshot was deleted");
  return {};
}
