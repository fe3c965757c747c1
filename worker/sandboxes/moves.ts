/**
 * Sandboxes on their way from one worker to another: what each side does, in the order of `gateway/fleet/moves.ts`. The copy at the
 * source counts until a gateway has written into its entry that another worker has it, and that of the target from then on. So
 * each side asks, or writes, there before it goes on with a copy or removes it.
 */
import { askAs } from "../../shared/bus/calls.ts";
import type { Request } from "../../shared/bus/contract/contract.ts";
import type { SandboxMove, SnapshotEntry } from "../../shared/bus/entries.ts";
import { SandgateError } from "../../shared/errors.ts";
import { faultPoint } from "../../shared/faults.ts";
import { errors } from "../../shared/known-errors.ts";
import { isolationOf } from "../../shared/schemas/sandboxes.ts";
import { until } from "../../shared/waiting.ts";
import type { WorkerContext } from "../context.ts";
import { processesByNamespace, signal } from "../runtime/process/proc.ts";
import { planArrival } from "../snapshots/memory.ts";
import { takeSnapshot } from "../snapshots/take.ts";
import { isNeeded } from "../snapshots/temporary.ts";
import type { RootSource } from "../store/records.ts";
import { GivenAway, isLeaving } from "./departures.ts";
import type { LiveSandbox } from "./registry.ts";

const archiveMsMax = 1_700_000;
const pollMs = 50;

/** Holds a running sandbox still until `goOn` or `letGo`, and puts all that it is made again from into the object store. */
export async function hold(context: WorkerContext, sandbox: LiveSandbox, call: Request<"hold">): Promise<SnapshotEntry> {
  const { sandboxes, workerId } = context;
  try {
    await sandboxes.apply(sandbox, "leave", { move: { id: call.move_id, from: workerId, peer: call.peer } });
    faultPoint("move.left");
    if (!sandbox.container) throw new SandgateError("unavailable", "the sandbox is being started again; try again");
    const temporary = { peer: call.peer, reservation_id: call.move_id };
    const taking = { ...call, quick: false, attempt_id: call.move_id, temporary, memory_wish: "prefer", isForMove: true } as const;
    const snapshot = await takeSnapshot(context, sandbox, taking);
    faultPoint("move.taken");
    const stored = await archived(context, sandbox, snapshot);
    faultPoint("move.held");
    return stored;
  } catch (error) {
    await goOn(context, sandbox).catch((err) => context.log.error({ err, sandbox: sandbox.record.id }, "a sandbox that stays could not go on yet"));
    throw error;
  }
}

/** Resolves when all of a snapshot is in the object store, from where gateways do not remove it meanwhile. */
async function archived({ sandboxes, snapshots, replicator, phase }: WorkerContext, sandbox: LiveSandbox, snapshot: SnapshotEntry): Promise<SnapshotEntry> {
  await sandboxes.noteMove(sandbox, { layers: replicator.layersOf(snapshot).map(({ id }) => id) });
  replicator.add(snapshot, true);
  const found = (): SnapshotEntry | undefined => snapshots.get(snapshot.id);
  await until(() => found()?.archived !== "pending" || !phase.isServing, { timeoutMs: archiveMsMax, pollMs });
  const stored = found();
  if (stored?.archived !== "done") throw new SandgateError("unavailable", "the files of the sandbox could not be stored in time");
  return stored;
}

/** The source goes on as before. @returns false if the sandbox is another worker's, and its copy here has been removed @throws {SandgateError} `unavailable` */
export async function goOn(context: WorkerContext, sandbox: LiveSandbox): Promise<boolean> {
  const { sandboxes, oci, log } = context;
  const { id, move } = sandbox.record;
  try {
    await sandboxes.keep(sandbox);
  } catch (error) {
    if (!(error instanceof GivenAway)) throw error;
    await letGo(context, sandbox);
    return false;
  }
  if (sandbox.container) oci.goOn(sandbox.container);
  log.warn({ event: "sandbox_stays", sandbox: id, move: move?.id }, "a sandbox was not moved and goes on here");
  await dropSnapshot(context, move);
  return true;
}

/** The source removes its copy. Nothing of it runs any more. */
export async function letGo(context: WorkerContext, sandbox: LiveSandbox): Promise<void> {
  const { lifecycle, oci, log } = context;
  const { container, record } = sandbox;
  lifecycle.endActivities(sandbox, new SandgateError("unavailable", "the sandbox was moved to another worker, which ended what ran in it"));
  if (container) {
    // What is frozen does not run again before it ends.
    for (const pid of processesByNamespace().get(container.pidNamespace) ?? []) signal(pid, "SIGKILL", container.pidNamespace);
    oci.standstills.release(container.id);
  }
  faultPoint("move.ended");
  await lifecycle.delete(sandbox);
  log.info({ event: "sandbox_left", sandbox: record.id, move: record.move?.id }, "a sandbox has left for another worker");
  await dropSnapshot(context, record.move);
}

/** The source of a sandbox that another worker has removes its copy, if it still has one, and its entry, if the other one's is there. */
export async function endDeparture(context: WorkerContext, id: string): Promise<void> {
  const { sandboxes } = context;
  const sandbox = sandboxes.get(id);
  if (sandbox && isLeaving(sandbox.record)) await letGo(context, sandbox);
  else if (!sandbox) await sandboxes.departures.withdraw(id);
}

/**
 * Before a sandbox comes here, ends what an earlier move of it has left: its copy from before it went, which could not be removed
 * then, or one that was received and never confirmed.
 *
 * @throws {SandgateError} `unavailable` while something of it is left
 */
export async function endEarlier(context: WorkerContext, id: string): Promise<void> {
  const { sandboxes } = context;
  if (await sandboxes.departures.isGiven(id)) await endDeparture(context, id);
  const sandbox = sandboxes.get(id);
  if (sandbox?.record.move && sandbox.record.status === "moving" && !isLeaving(sandbox.record)) await settleArrival(context, sandbox, sandbox.record.move);
  if (sandboxes.knows(id) || (await sandboxes.departures.isGiven(id)))
    throw new SandgateError("unavailable", "the worker still has an earlier copy of the sandbox; try again");
}

/** What cannot be removed now is removed like every snapshot of a call that is over. */
async function dropSnapshot({ snapshots, replicator, reserve, collectLayers, log }: WorkerContext, move: SandboxMove | undefined): Promise<void> {
  const snapshot = move && snapshots.byAttempt(move.id);
  if (!snapshot) return;
  try {
    await replicator.forget(snapshot.id);
    await reserve.spend(() => snapshots.remove(snapshot.id));
    await collectLayers();
  } catch (err) {
    log.warn({ err, snapshot: snapshot.id }, "the snapshot of a move is removed later");
  }
}

/** The target makes a copy that waits to be confirmed. On failure nothing of it is left. */
export async function receive(context: WorkerContext, call: Request<"receive">, root: RootSource): Promise<void> {
  const { sandboxes, lifecycle, workerId, log } = context;
  const { move: _move, error: _error, memory_restored: _restored, memory_reason: _reason, ...entry } = call.sandbox;
  const move = { id: call.move_id, from: call.sandbox.worker_id, peer: call.peer };
  const { env_vars } = call;
  const made = { worker_id: workerId, status: "creating", acknowledged: false, env_vars, root, move, ...planArrival(context.memory, call.snapshot) } as const;
  const { sandbox, recorded } = sandboxes.add({ ...entry, ...made });
  await recorded;
  await sandboxes.exclusive(entry.id, async () => {
    try {
      await lifecycle.fetch(sandbox);
      // Processes continue only when nobody else can have them any more.
      if (sandbox.record.memory_from) await sandboxes.arrive(sandbox, {});
      else await lifecycle.start(sandbox);
      faultPoint("move.received");
    } catch (error) {
      await sandboxes.remove(sandbox).catch((err) => log.error({ err, sandbox: entry.id }, "a copy that failed could not be forgotten"));
      throw error;
    }
  });
}

/** The target has the sandbox from now on. Can be repeated. @throws {SandgateError} `conflict`, `unavailable` */
export async function confirm(
  { sandboxes, lifecycle, log }: Pick<WorkerContext, "sandboxes" | "lifecycle" | "log">,
  sandbox: LiveSandbox,
  moveId: string,
): Promise<void> {
  const { move, status, id } = sandbox.record;
  if (!move && status !== "creating") return;
  if (move?.id !== moveId || status !== "moving") throw new SandgateError("conflict", "the sandbox is not on its way here");
  faultPoint("move.confirming");
  if (sandbox.record.memory_from) await lifecycle.start(sandbox);
  await sandboxes.promise(sandbox, "stay", { move: undefined });
  faultPoint("move.confirmed");
  log.info({ event: "sandbox_arrived", sandbox: id, move: moveId }, "a sandbox has arrived from another worker");
}

/** Ends the moves whose gateway does not carry them out any more. */
export async function settleMoves(context: WorkerContext): Promise<void> {
  for (const sandbox of [...context.sandboxes.all()]) {
    const { id, move, status } = sandbox.record;
    if (!move || status !== "moving" || (await isNeeded(context.bus, { peer: move.peer, reservation_id: move.id }))) continue;
    const settled = context.sandboxes.exclusive(id, async () => {
      const isStill = context.sandboxes.has(sandbox) && sandbox.record.status === "moving" && sandbox.record.move?.id === move.id;
      if (isStill) await (isLeaving(sandbox.record) ? goOn(context, sandbox) : settleArrival(context, sandbox, move));
    });
    await settled.catch((err) => context.log.warn({ err, sandbox: id }, "what becomes of a sandbox on its way cannot be known yet"));
  }
}

async function settleArrival(context: WorkerContext, sandbox: LiveSandbox, { id: move_id, from }: SandboxMove): Promise<void> {
  const { bus, peers, workerId, lifecycle, log } = context;
  const { id: sandbox_id } = sandbox.record;
  const gateway = [...peers.present()].find((one) => one.gateway);
  if (!gateway) throw errors.stopping("gateway");
  const { is_moved } = await askAs(bus, workerId, "settleMove", gateway.peer, { sandbox_id, move_id, from });
  if (is_moved) return confirm(context, sandbox, move_id);
  await lifecycle.delete(sandbox);
  log.warn({ event: "sandbox_not_received", sandbox: sandbox_id, move: move_id }, "the copy of a sandbox that was not moved is removed");
}

/** After a start: goes on with a sandbox that was about to leave, or removes it. @returns whether it stays, in a container that may run */
export async function keepOrRemove(context: WorkerContext, sandbox: LiveSandbox, containerId: string | undefined): Promise<boolean> {
  const { sandboxes, lifecycle, oci, log } = context;
  const { id } = sandbox.record;
  try {
    await sandboxes.keep(sandbox);
    if (containerId !== undefined) await oci.thawAbandoned(containerId, isolationOf(sandbox.record));
    return true;
  } catch (error) {
    if (!(error instanceof GivenAway)) throw error;
    log.info({ event: "sandbox_left", sandbox: id }, "a sandbox that another worker has is removed");
    await lifecycle.removeContainer(id);
    await sandboxes.remove(sandbox);
    return false;
  }
}
