/** Makes records and containers agree after a start, whatever the previous process was doing when it ended. */

import { SandgateError } from "../../shared/errors.ts";
import { backoffMs, retry } from "../../shared/waiting.ts";
import type { WorkerContext } from "../context.ts";
import { discardLeftovers } from "../files/upload.ts";
import { endedByRestart } from "../log/execution-log.ts";
import { restoredFrom } from "../restored.ts";
import type { ListedContainer } from "../runtime/podman/containers.ts";
import { processesByNamespace } from "../runtime/process/proc.ts";
import { isLeaving } from "./departures.ts";
import { keepOrRemove } from "./moves.ts";
import type { LiveSandbox } from "./registry.ts";

const retries = { firstMs: 100, maxMs: 5_000 };

/** Adopts, finishes or marks as lost every sandbox, and removes containers without a record or unknown to Podman. */
export async function reconcile(context: WorkerContext): Promise<void> {
  await context.podman.endUnknown();
  const containers = await untilReachable(context, await context.podman.list());
  const byId = new Map(containers.map((container) => [container.sandboxId, container]));
  const known = new Set([...context.sandboxes.all()].map(({ record }) => record.id));
  await Promise.all([...context.sandboxes.all()].map((sandbox) => settle(context, sandbox, byId.get(sandbox.record.id))));
  await Promise.all(containers.filter(({ sandboxId }) => !known.has(sandboxId)).map((container) => removeStray(context, container)));
  await endUnfinished(context);
  await context.sandboxes.synchronise();
}

/** Ends containers that are out of reach, which are then started again or removed like those that have ended. */
async function untilReachable({ oci, podman }: WorkerContext, found: readonly ListedContainer[]): Promise<ListedContainer[]> {
  const ended = await Promise.all(found.map(({ containerId, range }) => range !== undefined && oci.endUnreachable(containerId, range)));
  return ended.includes(true) ? podman.list() : [...found];
}

async function settle(context: WorkerContext, sandbox: LiveSandbox, container: ListedContainer | undefined): Promise<void> {
  const { sandboxes, lifecycle, log } = context;
  const { id, status, acknowledged, memory_from } = sandbox.record;
  try {
    if (status === "moving" && isLeaving(sandbox.record) && !(await leftOrKept(context, sandbox, container))) return;
    if (status === "deleting" || (status === "creating" && !acknowledged)) return await lifecycleEnd(context, sandbox);
    if (status === "creating") return void finishCreation(context, sandbox);
    // It starts when it is confirmed; of an attempt to do so, nobody was told.
    if (status === "moving" && memory_from) return await lifecycle.removeContainer(id);
    if (status === "error" && !container && !lifecycle.hasFiles(sandbox)) return; // That was found before.
    await lifecycle.recover(sandbox, container, container?.running ?? false);
    log.info({ event: "sandbox_adopted", sandbox: id, was_running: container?.running ?? false }, "a sandbox was found again");
  } catch (error) {
    log.error({ err: error, event: "sandbox_lost", sandbox: id }, "a sandbox is lost");
    await sandboxes.note(sandbox, "lost", { error: lossOf(context) }).catch((err) => log.error({ err, sandbox: id }, "its loss could not be recorded"));
  }
}

/** What was about to leave goes on here, unless another worker has it. @returns whether it does */
function leftOrKept(context: WorkerContext, sandbox: LiveSandbox, container: ListedContainer | undefined): Promise<boolean> {
  return retry(
    () => keepOrRemove(context, sandbox, container?.containerId),
    (err, attempt) => {
      context.log.warn({ err, sandbox: sandbox.record.id }, "whose a sandbox is cannot be known yet; trying again");
      return backoffMs(attempt, retries);
    },
  );
}

function lossOf({ config }: WorkerContext): string {
  const backup = restoredFrom(config);
  return backup === undefined
    ? "the sandbox was lost when its worker restarted"
    : `the files of the sandbox were lost: its worker was restored from a backup of ${backup}, which does not have them`;
}

/** Finishes a deletion, or undoes a creation that was never acknowledged. */
async function lifecycleEnd(context: WorkerContext, sandbox: LiveSandbox): Promise<void> {
  const { id } = sandbox.record;
  context.log.info({ event: "sandbox_dropped", sandbox: id, status: sandbox.record.status }, "an unfinished sandbox is removed");
  await context.lifecycle.removeContainer(id);
  await context.sandboxes.remove(sandbox);
}

/** Creates an acknowledged sandbox that the previous process did not get ready; nothing has run in it yet. */
async function finishCreation({ sandboxes, lifecycle, log }: WorkerContext, sandbox: LiveSandbox): Promise<void> {
  const { id } = sandbox.record;
  await sandboxes.exclusive(id, async () => {
    try {
      await lifecycle.removeContainer(sandbox.record.id);
      await lifecycle.start(sandbox);
      log.info({ event: "sandbox_created", sandbox: id }, "a sandbox was created after a restart");
    } catch (thrown) {
      log.warn({ err: thrown, event: "sandbox_create_failed", sandbox: id }, "a sandbox could not be created");
      const { message: error } = SandgateError.from(thrown);
      await sandboxes.note(sandbox, "failed", { error }).catch((err) => log.error({ err, sandbox: id }, "a failure could not be recorded"));
    }
  });
}

async function removeStray(context: WorkerContext, container: ListedContainer): Promise<void> {
  context.log.warn({ event: "container_stray", container: container.containerId, sandbox: container.sandboxId }, "a container without a record is removed");
  try {
    await context.podman.remove(container.containerId);
    if (container.sandboxId) await context.lifecycle.removeContainer(container.sandboxId);
  } catch (err) {
    context.log.error({ err, ...container }, "a stray container could not be removed");
  }
}

/** Commands and uploads of the previous process have lost their client: removes what they left, and ends their log entries. */
async function endUnfinished({ sandboxes, oci, store, log }: WorkerContext): Promise<void> {
  const spaces = processesByNamespace();
  for (const { container, record } of sandboxes.all()) {
    if (!container) continue;
    const ended = await oci.killOrphans(container, spaces.get(container.pidNamespace) ?? []);
    await discardLeftovers(oci, container).catch((err) => log.error({ err, sandbox: record.id }, "leftovers of uploads could not be removed"));
    if (ended > 0) log.warn({ event: "commands_orphaned", sandbox: record.id, commands: ended }, "commands of the previous worker process were ended");
  }
  for (const entry of store.log.unfinished()) await store.log.put(endedByRestart(entry));
}

/** Brings the directory up to date after the bus was away, and finishes deletions that the outage interrupted. */
export async function catchUp(context: WorkerContext): Promise<void> {
  await retry(
    () => context.sandboxes.synchronise(),
    (err, attempt) => {
      context.log.warn({ err }, "the directory could not be brought up to date; trying again");
      return backoffMs(attempt, retries);
    },
  );
  await Promise.all([...context.sandboxes.all()].map((sandbox) => finishDeletion(context, sandbox)));
}

/** Continues a deletion that was begun; a failure is logged. */
export async function finishDeletion({ sandboxes, lifecycle, log }: WorkerContext, sandbox: LiveSandbox): Promise<void> {
  const { id, status } = sandbox.record;
  if (status !== "deleting") return;
  try {
    await sandboxes.exclusive(id, async () => {
      if (sandboxes.has(sandbox)) await lifecycle.delete(sandbox);
    });
  } catch (error) {
    log.error({ err: error, sandbox: id }, "a deletion could not be finished");
  }
}
