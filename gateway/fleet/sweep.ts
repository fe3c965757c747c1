/** Periodically removes obsolete data from JetStream. One gateway does it for all. */

import type { SnapshotEntry } from "../../shared/bus/entries.ts";
import type { BucketWriter } from "../../shared/bus/kv.ts";
import { every } from "../../shared/util/background.ts";
import type { Logger } from "../../shared/util/log.ts";
import type { EntryMirror } from "./entries.ts";
import type { LayerCollector } from "./layers.ts";

const everyMs = 3_600_000;
/** By then every gateway has seen a deletion, or reloads everything because it lost the connection. */
const forgetAfterMs = 1_800_000;

interface Parts {
  /** Whether this gateway is the one that sweeps. */
  readonly isMine: () => boolean;
  /** The buckets in which deletions leave markers. */
  readonly buckets: readonly Pick<BucketWriter<never>, "forgetDeleted">[];
  readonly snapshots: EntryMirror<SnapshotEntry>;
  readonly layers: LayerCollector;
  readonly log: Logger;
}

/** Starts sweeping. Returns a function that stops it. */
export function startSweeping(parts: Parts): () => void {
  const { isMine, log } = parts;
  const timer = every(everyMs, log, "could not remove obsolete data from the storage", () => (isMine() ? sweep(parts) : undefined));
  return () => clearInterval(timer);
}

/** Sweeps once. @throws {SandgateError} `unavailable`; the next sweep continues. */
export async function sweep({ buckets, snapshots, layers }: Omit<Parts, "isMine" | "log">, ageMs = forgetAfterMs): Promise<void> {
  for (const bucket of buckets) await bucket.forgetDeleted(ageMs);
  await layers.sweep(async () => {
    await snapshots.caughtUp();
    return [...snapshots.values()];
  });
}
