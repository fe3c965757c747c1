/** Clones a sandbox: takes a snapshot and creates a sandbox from it. */

import type { SandboxEntry, SnapshotEntry } from "../../shared/bus/entries.ts";
import { SandgateError } from "../../shared/errors.ts";
import type { Clone, CloneBody } from "../../shared/schemas/snapshots.ts";
import { derivedName, newId } from "../../shared/util/ids.ts";
import type { Answer, By, Call } from "../call.ts";
import type { GatewayContext } from "../context.ts";
import { type RestoreFor, restore, type SandboxWanted, wishForCopy } from "./restore.ts";
import { madeBefore, present, refuseBadImage, withReservation } from "./sandboxes.ts";
import { attemptedSnapshot, presentSnapshot, removeSnapshot, takeSnapshot } from "./snapshots.ts";

interface Made {
  readonly sandbox: SandboxEntry;
  readonly snapshot: SnapshotEntry;
}

export async function cloneSandbox(context: GatewayContext, { exchange, by, caller, id, body }: Call<unknown, CloneBody>): Promise<Answer<Clone>> {
  const { name, image, resources, snapshot_name, memory: memoryWish, wait_for_ready: wait = true } = body;
  refuseBadImage(context, image);
  const wanted: SandboxWanted = { name, image, cpu: resources?.cpus, memory: resources?.memory, memoryWish, wait };
  return context.idempotency.answer(exchange, {
    accountId: by.account_id,
    wanted: { clone: { sandbox_id: id, snapshot_name, ...wanted } },
    run: (reservationId) =>
      // Reserves the place first: a snapshot that could not be used would pause the sandbox's processes for nothing.
      withReservation(context, caller, reservationId, () => clone(context, { by, caller, reservationId }, id, snapshot_name, wanted)),
    recover: (attemptId) => attempted(context, by, attemptId, wait),
    show: ({ sandbox, snapshot }) => {
      exchange.audited = { made: [sandbox.id, snapshot.id] };
      return { sandbox: present(sandbox), snapshot: presentSnapshot(snapshot) };
    },
  });
}

async function clone(context: GatewayContext, who: RestoreFor, id: string, snapshotName: string | undefined, wanted: SandboxWanted): Promise<Made> {
  const { by, reservationId: attemptId } = who;
  const source = await context.sandboxes.find(id, by.account_id);
  refuseIfFull(context, source);
  // The snapshot already exists if this continues an attempt whose gateway died between the two steps.
  const known = context.snapshots.byAttempt(attemptId);
  const memory = wishForCopy(context, who.caller, source, wanted);
  const snapshot = known?.status === "ready" ? known : await takeSnapshot(context, by, { sandboxId: id, attemptId, name: snapshotName, quick: false, memory });
  try {
    const name = wanted.name ?? derivedName(source.name, "clone", newId("sandbox"));
    return { sandbox: await restore(context, who, snapshot, { ...wanted, name }), snapshot };
  } catch (error) {
    await dropUnused(context, who, snapshot);
    throw error;
  }
}

/** The snapshot of a copy is not archived yet when it is restored, so only the source's worker can restore it. @throws {SandgateError} `unavailable` */
export function refuseIfFull({ workers }: GatewayContext, { worker_id }: SandboxEntry): void {
  const presence = workers.workers().find(({ worker }) => worker.id === worker_id);
  if (presence && !presence.worker.accepts) throw new SandgateError("unavailable", "the worker of this sandbox has no room for another sandbox");
}

/** Deletes the snapshot of a failed clone, unless a sandbox may have been created after all. */
async function dropUnused(context: GatewayContext, { by, reservationId }: RestoreFor, snapshot: SnapshotEntry): Promise<void> {
  try {
    await context.sandboxes.caughtUp();
    if (!context.sandboxes.hasReservation(reservationId)) await removeSnapshot(context, by, snapshot);
  } catch (err) {
    context.log.warn({ err, snapshot: snapshot.id }, "the snapshot of a failed clone could not be deleted");
  }
}

/** The result of an earlier attempt, if it is complete. A snapshot alone is kept for `clone` to continue with. */
async function attempted(context: GatewayContext, by: By, attemptId: string, wait: boolean): Promise<Made | undefined> {
  const snapshot = await attemptedSnapshot(context, attemptId);
  const sandbox = await madeBefore(context, by, attemptId, wait ? "restore" : undefined);
  if (sandbox && !snapshot) throw new SandgateError("conflict", `the clone was made, it is ${sandbox.id}; its snapshot has been deleted since`);
  return sandbox && snapshot && { sandbox, snapshot };
}
