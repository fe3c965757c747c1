/** Snapshots that a gateway needs for one call: it removes them itself, unless it is lost or cannot reach this worker. */
import { ask } from "../../shared/bus/calls.ts";
import type { SnapshotEntry } from "../../shared/bus/entries.ts";
import { NoResponder } from "../../shared/bus/failures.ts";
import type { WorkerContext } from "../context.ts";

/** Removes those whose call is over. Their layers are collected afterwards. */
export async function removeAbandoned({ bus, snapshots, reserve, log }: Pick<WorkerContext, "bus" | "snapshots" | "reserve" | "log">): Promise<void> {
  for (const { id, status, temporary } of [...snapshots.all()]) {
    if (status !== "ready" || !temporary || (await isNeeded(bus, temporary))) continue;
    // The gateway may just have removed it.
    if (snapshots.get(id)?.status !== "ready") continue;
    log.info({ event: "snapshot_abandoned", snapshot: id }, "the snapshot of a call that is over is removed");
    await reserve.spend(() => snapshots.remove(id)).catch((err) => log.warn({ err, snapshot: id }, "the snapshot of a call that is over is removed later"));
  }
}

/** Whether the call may still be going on, which it is also while the gateway cannot be asked. */
export async function isNeeded(bus: WorkerContext["bus"], { peer, reservation_id }: NonNullable<SnapshotEntry["temporary"]>): Promise<boolean> {
  try {
    return (await ask(bus, "held", peer, { ids: [reservation_id] })).ids.length > 0;
  } catch (error) {
    return !(error instanceof NoResponder);
  }
}
