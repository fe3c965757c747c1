/** Snapshots: take, list, get, delete, delete-all. Restoring and cloning are in restore.ts and clone.ts. */
import type { SnapshotEntry } from "../../shared/bus/entries.ts";
import { NoResponder } from "../../shared/bus/failures.ts";
import { SandgateError } from "../../shared/errors.ts";
import { errors } from "../../shared/known-errors.ts";
import type { MemoryWish } from "../../shared/memory.ts";
import type { PageQuery } from "../../shared/schemas/fields.ts";
import type { DeletedAll } from "../../shared/schemas/sandboxes.ts";
import type { DeletedSnapshot, SnapshotBody, SnapshotInfo, SnapshotPage } from "../../shared/schemas/snapshots.ts";
import { Semaphore } from "../../shared/util/mutex.ts";
import { until } from "../../shared/waiting.ts";
import type { Answer, By, Call } from "../call.ts";
import type { GatewayContext } from "../context.ts";
import { iso, paginate } from "./views.ts";

const pollMs = 100;

/** A snapshot as responses show it. */
export function presentSnapshot(entry: SnapshotEntry): SnapshotInfo {
  const { id, name, source_sandbox_id, source_sandbox_name, status, created_at_ms, consistency, size_bytes, pause_ms } = entry;
  const { exclusive_bytes = null, shared_bytes = null, memory, memory_reason = null } = entry;
  const sizes = { size_bytes, exclusive_bytes, shared_bytes };
  const shown = { id, name, source_sandbox_id, source_sandbox_name, status, created_at: iso(created_at_ms), consistency };
  return { ...shown, ...sizes, memory, memory_reason, pause_ms };
}

export async function createSnapshot(context: GatewayContext, { exchange, by, id, body }: Call<unknown, SnapshotBody>): Promise<Answer<SnapshotInfo>> {
  const { name, quick = false, memory } = body;
  if (quick && memory === "require")
    throw new SandgateError("invalid_request", 'a quick snapshot never includes memory: leave out quick, or memory: "require"');
  const wanted = { name, quick, memory };
  return context.idempotency.answer(exchange, {
    accountId: by.account_id,
    wanted: { snapshot: { sandbox_id: id, ...wanted } },
    run: (attemptId) => takeSnapshot(context, by, { sandboxId: id, attemptId, ...wanted }),
    recover: (attemptId) => attemptedSnapshot(context, attemptId),
    show: (entry) => {
      exchange.audited = { made: [entry.id] };
      return presentSnapshot(entry);
    },
  });
}

/** Which sandbox to snapshot, and how. */
interface SnapshotWanted {
  readonly sandboxId: string;
  readonly attemptId: string;
  /** If undefined, the worker chooses one. */
  readonly name: string | undefined;
  readonly quick: boolean;
  /** If undefined, as far as possible: a quick one is not. */
  readonly memory: MemoryWish | undefined;
  /** Of a snapshot that nobody is to see: whom its worker asks whether it is still needed. */
  readonly temporary?: SnapshotEntry["temporary"];
}

/**
 * Has the sandbox's worker take a snapshot. The snapshot is ready and durable when this resolves.
 *
 * @throws {SandgateError} `not_found`, `conflict` when the sandbox is not running, `insufficient_storage`, `unprocessable` when its memory
 * is required and cannot be taken, `unavailable`
 */
export async function takeSnapshot({ sandboxes, snapshots, workers }: GatewayContext, by: By, wanted: SnapshotWanted): Promise<SnapshotEntry> {
  const { sandboxId, attemptId, name, quick, memory = quick ? "skip" : "prefer", temporary } = wanted;
  const { worker_id } = await sandboxes.find(sandboxId, by.account_id);
  const call = { ...by, sandbox_id: sandboxId, name, quick, memory_wish: memory, attempt_id: attemptId, temporary };
  const entry = await workers.call(workers.worker(worker_id), "snapshot", call);
  return temporary ? entry : snapshots.note(entry);
}

/**
 * The snapshot that an earlier attempt has made, once it is ready.
 *
 * @throws {SandgateError} `unavailable` while it is unknown whether it will be
 */
export async function attemptedSnapshot({ snapshots, workers }: GatewayContext, attemptId: string): Promise<SnapshotEntry | undefined> {
  await snapshots.caughtUp();
  const isInTheMaking = (entry: SnapshotEntry | undefined): boolean => entry?.status === "creating" && workers.has(entry.worker_id);
  await until(() => !isInTheMaking(snapshots.byAttempt(attemptId)), { timeoutMs: workers.timeoutOf("snapshot"), pollMs });
  const entry = snapshots.byAttempt(attemptId);
  if (entry?.status === "creating") throw new SandgateError("unavailable", "the snapshot is not ready and its worker is gone or busy; try again");
  return entry?.status === "ready" ? entry : undefined;
}

/** The snapshots that can be restored, newest first. */
export function listSnapshots({ snapshots }: GatewayContext, { caller, query }: Call<PageQuery, unknown>): SnapshotPage {
  const ready = snapshots.ofAccount(caller.account.id).filter(({ status }) => status === "ready");
  return paginate(ready, query, presentSnapshot);
}

export async function getSnapshot({ snapshots }: GatewayContext, { by, id }: Call<unknown, unknown>): Promise<SnapshotInfo> {
  return presentSnapshot(await snapshots.find(id, by.account_id));
}

export async function deleteSnapshot(context: GatewayContext, { by, id }: Call<unknown, unknown>): Promise<DeletedSnapshot> {
  const entry = await context.snapshots.find(id, by.account_id);
  await removeSnapshot(context, by, entry);
  return { message: "Snapshot deleted", name: entry.name, deferred: false };
}

export async function deleteAllSnapshots(context: GatewayContext, { by }: Call<unknown, unknown>): Promise<DeletedAll> {
  return deleteAll("snapshot", context.snapshots.ofAccount(by.account_id), (entry) => removeSnapshot(context, by, entry));
}

/**
 * Deletes a snapshot. If its worker is gone, the entry is only marked, and the worker drops its copy when it returns.
 *
 * @throws {SandgateError} `not_found` when another call was faster, `conflict` while it is being taken, `unavailable`
 */
export async function removeSnapshot(context: GatewayContext, by: By, entry: SnapshotEntry): Promise<void> {
  const { snapshots, log } = context;
  await removeWhereItIs(context, by, entry);
  // The client does not wait for this: remains in the object store only cost space.
  void snapshots.dropLayers(entry).catch((err) => log.warn({ err, snapshot: entry.id }, "the layers of a snapshot could not be removed from the object store"));
}

async function removeWhereItIs({ snapshots, workers }: GatewayContext, by: By, entry: SnapshotEntry): Promise<void> {
  const { id, worker_id } = entry;
  try {
    if (workers.has(worker_id)) {
      await workers.call(workers.worker(worker_id), "deleteSnapshot", { ...by, snapshot_id: id });
      return snapshots.noteGone(id);
    }
  } catch (error) {
    // The worker does not know the snapshot, so our directory was out of date.
    if (error instanceof SandgateError && error.code === "not_found") snapshots.noteGone(id);
    // Only NoResponder proves that the call never reached the worker.
    if (!(error instanceof NoResponder)) throw error;
  }
  if (!(await snapshots.markDeleted(entry))) throw errors.notFound("snapshot", id);
}

const deletesAtOnce = 8;

/** Deletes a few at a time. A failure does not stop the others and is listed in the answer. */
export async function deleteAll<T extends { readonly id: string }>(
  kind: "sandbox" | "snapshot",
  items: readonly T[],
  remove: (item: T) => Promise<void>,
): Promise<DeletedAll> {
  const slots = new Semaphore(deletesAtOnce);
  const errors: { id: string; error: string }[] = [];
  const deleted: string[] = [];
  const removeOne = async (item: T): Promise<void> => {
    try {
      await remove(item);
      deleted.push(item.id);
    } catch (error) {
      errors.push({ id: item.id, error: SandgateError.from(error).message });
    }
  };
  await Promise.all(items.map((item) => slots.run(() => removeOne(item))));
  const message = `${deleted.length} ${plural(kind, deleted.length)} deleted`;
  return { deleted_count: deleted.length, deleted_ids: deleted, message, ...(errors.length > 0 ? { errors } : {}) };
}

function plural(kind: "sandbox" | "snapshot", count: number): string {
  if (count === 1) return kind;
  return kind === "sandbox" ? "sandboxes" : "snapshots";
}
