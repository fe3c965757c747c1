/** After a start: makes records and containers agree, whatever the last process was in the middle of. */
import type { Logger } from "../../shared/log.ts";
import type { OciRuntime } from "../runtime/oci.ts";
import type { ListedContainer, Podman } from "../runtime/podman.ts";
import { processesByNamespace } from "../runtime/proc.ts";
import type { Store } from "../store.ts";
import type { SandboxLifecycle } from "./lifecycle.ts";
import type { LiveSandbox, Sandboxes } from "./registry.ts";

interface Parts {
  readonly sandboxes: Sandboxes;
  readonly lifecycle: SandboxLifecycle;
  readonly podman: Podman;
  readonly oci: OciRuntime;
  readonly store: Store;
  readonly log: Logger;
  readonly workerId: string;
}

/** Adopts, finishes or marks lost every sandbox; removes containers that no record knows. */
export async function reconcile(parts: Parts): Promise<void> {
  const containers = await parts.podman.list(parts.workerId);
  const byId = new Map(containers.map((container) => [container.sandboxId, container]));
  const known = new Set([...parts.sandboxes.all()].map(({ record }) => record.id));
  await Promise.all([...parts.sandboxes.all()].map((sandbox) => settle(parts, sandbox, byId.get(sandbox.record.id))));
  await Promise.all(containers.filter(({ sandboxId }) => !known.has(sandboxId)).map((container) => removeStray(parts, container)));
  await endUnfinished(parts);
  await parts.sandboxes.synchronise();
}

async function settle(parts: Parts, sandbox: LiveSandbox, container: ListedContainer | undefined): Promise<void> {
  const { sandboxes, lifecycle, log } = parts;
  const { id, status, acknowledged } = sandbox.record;
  try {
    if (status === "deleting" || !acknowledged) return await lifecycleEnd(parts, sandbox);
    if (!container || status === "creating") throw new Error("its container is gone");
    await lifecycle.recover(sandbox, container.containerId, container.running);
    log.info({ event: "sandbox_adopted", sandbox: id, was_running: container.running }, "a sandbox was found again");
  } catch (error) {
    log.error({ err: error, event: "sandbox_lost", sandbox: id }, "a sandbox is lost");
    await sandboxes
      .apply(sandbox, "lost", { error: "the sandbox was lost when its worker restarted" })
      .catch((err) => log.error({ err, sandbox: id }, "its loss could not be recorded"));
  }
}

/** Finishes a deletion, or undoes a creation whose client was never told. */
async function lifecycleEnd(parts: Parts, sandbox: LiveSandbox): Promise<void> {
  const { id } = sandbox.record;
  parts.log.info({ event: "sandbox_dropped", sandbox: id, status: sandbox.record.status }, "an unfinished sandbox is removed");
  await parts.podman.remove(`sandgate-${id}`);
  await parts.sandboxes.remove(sandbox);
}

async function removeStray(parts: Parts, container: ListedContainer): Promise<void> {
  parts.log.warn({ event: "container_stray", container: container.containerId, sandbox: container.sandboxId }, "a container without a record is removed");
  await parts.podman.remove(container.containerId);
}

/** Commands of the last process have lost their client: their processes end, their log entries say so. */
async function endUnfinished({ sandboxes, oci, store, log }: Parts): Promise<void> {
  const spaces = processesByNamespace();
  for (const { container, record } of sandboxes.all()) {
    const ended = container ? await oci.killOrphans(container, spaces.get(container.pidNamespace) ?? []) : 0;
    if (ended > 0) log.warn({ event: "commands_orphaned", sandbox: record.id, commands: ended }, "commands of the last process were ended");
  }
  for (const entry of store.unfinishedExecutions()) {
    await store.putExecution({
      ...entry,
      status: "error",
      exit_code: -1,
      execution_time_ms: Date.now() - entry.started_at_ms,
      error: "the worker restarted while the command ran",
    });
  }
}

/** After the bus was away: deletions that it interrupted are finished, the directory is made to agree. */
export async function finishDeletions({ sandboxes, lifecycle, log }: Parts): Promise<void> {
  const pending = [...sandboxes.all()].filter(({ record }) => record.status === "deleting");
  const finish = (sandbox: LiveSandbox): Promise<void> =>
    sandboxes.exclusive(sandbox.record.id, async () => {
      if (sandboxes.has(sandbox)) await lifecycle.delete(sandbox);
    });
  try {
    await Promise.all(pending.map(finish));
    await sandboxes.synchronise();
  } catch (error) {
    log.error({ err: error }, "the directory could not be brought up to date");
  }
}
