/** Retries deletions that could not be finished at first, for example on a full disk, and removes what nobody else will. */
import { inBackground } from "../../shared/util/background.ts";
import type { WorkerContext } from "../context.ts";
import { removeAbandoned } from "../snapshots/temporary.ts";
import { settleMoves } from "./moves.ts";
import { finishDeletion } from "./reconcile.ts";

const retryMs = 5_000;

/** Retries them at intervals, until the returned function is called. */
export function retryDeletions(context: WorkerContext): () => void {
  let timer: NodeJS.Timeout | undefined;
  const later = (): void => {
    timer = setTimeout(
      () => inBackground(context.log, "unfinished deletions could not be retried", () => retry(context).finally(() => timer && later())),
      retryMs,
    );
  };
  later();
  return () => {
    clearTimeout(timer);
    timer = undefined;
  };
}

async function retry(context: WorkerContext): Promise<void> {
  const { sandboxes, snapshots, reserve, collectLayers, log } = context;
  for (const sandbox of [...sandboxes.all()]) await finishDeletion(context, sandbox);
  for (const { id } of [...snapshots.all()]) {
    await reserve.spend(() => snapshots.finishRemoval(id)).catch((err) => log.warn({ err, snapshot: id }, "a deletion could still not be finished"));
  }
  await settleMoves(context);
  await removeAbandoned(context);
  await collectLayers().catch((err) => log.warn({ err }, "unused layers could not be removed"));
  await reserve.fill();
}
