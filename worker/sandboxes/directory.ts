/** Keeps the directory as this worker's records are: after the bus was away, and after writes that it did not confirm. */
import { every, inBackground } from "../../shared/util/background.ts";
import type { WorkerContext } from "../context.ts";
import { reconcileSnapshots } from "../snapshots/reconcile.ts";
import { catchUp } from "./reconcile.ts";

const lookMs = 5_000;
const failure = "the directory could not be brought up to date";

/** Begins with that. Returns a function that ends it. */
export function keepDirectory(context: WorkerContext): () => void {
  const { storage, log, isDirectoryUnsure } = context;
  let isBusy = false;
  const bringUpToDate = async (): Promise<void> => {
    if (isBusy) return;
    isBusy = true;
    try {
      await catchUp(context);
      await reconcileSnapshots(context);
    } finally {
      isBusy = false;
    }
  };
  const forget = storage.onRestored(() => inBackground(log, failure, bringUpToDate));
  const timer = every(lookMs, log, failure, () => (storage.connected && isDirectoryUnsure() ? bringUpToDate() : undefined));
  return () => {
    forget();
    clearInterval(timer);
  };
}
