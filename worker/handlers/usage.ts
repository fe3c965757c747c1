/** The calls `status` and `logs`. */
import type { Reply, Request } from "../../shared/bus/contract/contract.ts";
import type { WorkerContext } from "../context.ts";
import { innerProcesses } from "../runtime/container/strong.ts";
import { storedUse } from "../sandboxes/registry.ts";

/** What a sandbox uses now, and its samples of the time asked for. */
export async function status(context: WorkerContext, call: Request<"status">): Promise<Reply<"status">> {
  const sandbox = context.sandboxes.owned(call.sandbox_id, call.account_id);
  // What the kernel counts also changes after the last command, when it gets to freeing what was deleted.
  const isCounted = context.storages.volumeOf(sandbox.container?.writableLayer) !== undefined;
  if (sandbox.diskStale && sandbox.container) await Promise.all([context.usage.measureDisk(sandbox), context.usage.measureHoldings(sandbox)]);
  else if (isCounted) await context.usage.measureDisk(sandbox);
  const { cpuPercent, memoryBytes, processes } = context.usage.current(sandbox);
  const { container } = sandbox;
  const memory_mb = megabytes(memoryBytes);
  return {
    current: {
      cpu_percent: cpuPercent,
      memory_mb,
      memory_percent: Math.min(100, Math.round((memory_mb / sandbox.record.memory) * 10_000) / 100),
      disk_mb: megabytes(storedUse(sandbox).bytes),
      processes: container?.isolation === "strong" ? (await innerProcesses(container)).length : processes,
    },
    history: await context.store.samples(call.sandbox_id, call.from_ms, call.to_ms),
  };
}

/** A page of the account's executions on this worker, newest first. */
export async function logs({ store }: WorkerContext, call: Request<"logs">): Promise<Reply<"logs">> {
  const { account_id, sandbox_id, from_ms, to_ms, after, limit, bytes_max } = call;
  return store.log.page({ accountId: account_id, sandboxId: sandbox_id, fromMs: from_ms, toMs: to_ms, after, limit, bytesMax: bytes_max });
}

const megabytes = (bytes: number): number => Math.round((bytes / 1024 ** 2) * 100) / 100;
