/** Keeps the directory as this worker's records are: after the bus was away, after writes that it did not confirm, and after a standstill. */
import { every, inBackground } from "../../shared/util/background.ts";
import type { WorkerContext } from "../context.ts";
import { reconcileSnapshots } from "../snapshots/reconcile.ts";
import { catchUp } from "./reconcile.ts";

const lookMs = 5_000;
const failure = "the directory could not be brought up to date";

/** Begins with that. Returns a function that ends it. */
export function keepDirectory(context: WorkerContext): () => void {
  const { storage, log, stalls, isDirectoryUnsure } = context;
  let isBusy = false;
  let stallsSeen = stalls.times;
  const alone = async (action: () => Promise<void>): Promise<void> => {
    if (isBusy) return;
    isBusy = true;
    try {
      await action();
    } finally {
      isBusy = false;
    }
  };
  const bringUpToDate = (): Promise<void> =>
    alone(async () => {
      await catchUp(context);
      await reconcileSnapshots(context);
    });
  /** Gateways that took this process for gone while it stood still have marked what was deleted. Only now all of them know that it is back. */
  const afterStall = (times: number): Promise<void> =>
    alone(async () => {
      await reconcileSnapshots(context);
      stallsSeen = times;
    });
  const look = (): Promise<void> | undefined => {
    if (!storage.connected) return undefined;
    if (isDirectoryUnsure()) return bringUpToDate();
    return stalls.suspect || stalls.times === stallsSeen ? undefined : afterStall(stalls.times);
  };
  const forget = storage.onRestored(() => inBackground(log, failure, bringUpToDate));
  const timer = every(lookMs, log, failure, look);
  return () => {
    forget();
    clearInterval(timer);
  };
}
