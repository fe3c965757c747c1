/** Forks a sandbox: takes a snapshot, makes many sandboxes from it at once, and removes it again. */
import type { SandboxEntry, SnapshotEntry } from "../../shared/bus/entries.ts";
import { SandgateError } from "../../shared/errors.ts";
import type { ErrorAnswer } from "../../shared/schemas/fields.ts";
import type { Fork, ForkBody } from "../../shared/schemas/snapshots.ts";
import { derivedName, newId, numberedName } from "../../shared/util/ids.ts";
import { Semaphore } from "../../shared/util/mutex.ts";
import type { Answer, By, Call, Caller } from "../call.ts";
import type { GatewayContext } from "../context.ts";
import { refuseIfFull } from "./clone.ts";
import { restore, type SandboxWanted, wishForCopy } from "./restore.ts";
import { madeBefore, present } from "./sandboxes.ts";
import { takeSnapshot } from "./snapshots.ts";

/** Copies of one fork that are made at the same time. */
const copiesAtOnce = 8;

/** What became of one copy. */
type Copy = SandboxEntry | SandgateError;

interface ForkFor {
  readonly by: By;
  readonly caller: Caller;
}

export async function forkSandbox(context: GatewayContext, { exchange, by, caller, id, body }: Call<unknown, ForkBody>): Promise<Answer<Fork>> {
  const { count, name, resources, memory: memoryWish, wait_for_ready: wait = true } = body;
  const wanted: SandboxWanted = { name, image: undefined, cpu: resources?.cpus, memory: resources?.memory, memoryWish, wait };
  return context.idempotency.answer(exchange, {
    accountId: by.account_id,
    wanted: { fork: { sandbox_id: id, count, ...wanted } },
    run: (attemptId) => fork(context, { by, caller }, id, placesOf(attemptId, count), wanted),
    recover: (attemptId) => attempted(context, by, placesOf(attemptId, count), wait),
    show: (copies) => {
      exchange.audited = { made: copies.flatMap((copy) => (copy instanceof SandgateError ? [] : [copy.id])) };
      return { data: copies.map((copy) => presentCopy(copy, by)) };
    },
  });
}

/** The ids of the reservations of an attempt, one for each copy. */
const placesOf = (attemptId: string, count: number): string[] =>
  Array.from({ length: count }, (_, index) => (index === 0 ? attemptId : `${attemptId}-${index}`));

/** @throws {SandgateError} if nothing was made: `not_found`, `sandbox_limit_reached` without room for all, and what a snapshot throws */
async function fork(context: GatewayContext, who: ForkFor, id: string, places: readonly string[], wanted: SandboxWanted): Promise<Copy[]> {
  const { by, caller } = who;
  const source = await context.sandboxes.find(id, by.account_id);
  refuseIfFull(context, source);
  const memory = wishForCopy(context, caller, source, wanted);
  // All places first: a snapshot that could not be used would pause the sandbox's processes for nothing.
  const reservation = await context.reservations.reserveAll(places, caller.limitKey, caller.limits.sandboxes);
  try {
    // The worker asks this gateway about the first place, and removes the snapshot when that is over.
    const temporary = { peer: context.peers.peer, reservation_id: places[0] as string };
    const taken = { sandboxId: id, attemptId: newId("reservation"), name: undefined, quick: false, memory, temporary };
    const snapshot = await takeSnapshot(context, by, taken);
    const copies = await copyAll(context, who, snapshot, { places, source, wanted });
    void drop(context, by, snapshot);
    return copies;
  } finally {
    await reservation.settle();
  }
}

interface Copying {
  readonly places: readonly string[];
  readonly source: SandboxEntry;
  readonly wanted: SandboxWanted;
}

/** Makes a few at a time. A failure does not stop the others. */
function copyAll(context: GatewayContext, who: ForkFor, snapshot: SnapshotEntry, { places, source, wanted }: Copying): Promise<Copy[]> {
  const slots = new Semaphore(copiesAtOnce);
  const copy = async (reservationId: string, index: number): Promise<Copy> => {
    const name = nameOf(source, wanted.name, index, places.length);
    try {
      return await restore(context, { ...who, reservationId }, snapshot, { ...wanted, name });
    } catch (thrown) {
      const error = SandgateError.from(thrown);
      context.log[error.code === "internal_error" ? "error" : "warn"](
        { err: thrown, event: "copy_failed", sandbox: source.id },
        "a copy of a sandbox was not made",
      );
      return error;
    }
  };
  return Promise.all(places.map((place, index) => slots.run(() => copy(place, index))));
}

function nameOf(source: SandboxEntry, wanted: string | undefined, index: number, count: number): string {
  if (wanted === undefined) return derivedName(source.name, "fork", newId("sandbox"));
  return count === 1 ? wanted : numberedName(wanted, index + 1);
}

/** Nobody waits for this: what cannot be removed now, the worker removes by itself. */
async function drop({ workers, log }: GatewayContext, by: By, { id, worker_id }: SnapshotEntry): Promise<void> {
  try {
    await workers.call(workers.worker(worker_id), "deleteSnapshot", { ...by, snapshot_id: id });
  } catch (err) {
    log.debug({ err, snapshot: id }, "the worker is left to remove the snapshot of a fork");
  }
}

/** What an earlier attempt has made, if anything. Its snapshot may be gone, so what is missing is not made from it. */
async function attempted(context: GatewayContext, by: By, places: readonly string[], wait: boolean): Promise<Copy[] | undefined> {
  const made = await Promise.all(places.map((place) => madeBefore(context, by, place, wait ? "restore" : undefined)));
  if (made.every((one) => one === undefined)) return undefined;
  return made.map((one) => one ?? new SandgateError("unavailable", "the gateway was lost before it had made this copy"));
}

function presentCopy(copy: Copy, { request_id }: By): Fork["data"][number] {
  if (!(copy instanceof SandgateError)) return { sandbox: present(copy) };
  const { code, reason, message } = copy;
  return { error: { code, ...(reason ? { reason } : {}), message, request_id } } satisfies ErrorAnswer;
}
