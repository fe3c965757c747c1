/** What snapshots take on this worker's disk. It changes with what else exists: files that a sandbox has replaced are its snapshots' alone. */
import type { SnapshotEntry } from "../../shared/bus/entries.ts";
import { every } from "../../shared/util/background.ts";
import { yielding } from "../../shared/util/yielding.ts";
import type { WorkerContext } from "../context.ts";
import { layerUsers } from "./layers.ts";
import type { Sizes } from "./registry.ts";

/** The kernel counts anew when the file system writes its state, by default every 5 seconds on a volume of ours. */
const lookMs = 5_000;
/** Smaller changes are not told: they are those of the file system itself. */
const toldBytes = 64 * 1024;

type Parts = Pick<WorkerContext, "snapshots" | "sandboxes" | "layers" | "log">;

/** What a snapshot takes now; undefined if one of its layers is not here or not counted. */
export function sizesOf(
  { layers }: Pick<Parts, "layers">,
  { manifest }: Pick<SnapshotEntry, "manifest">,
  users: ReadonlyMap<string, number>,
): Required<Sizes> | undefined {
  let [exclusive_bytes, shared_bytes] = [manifest.memory_image?.size_bytes ?? 0, 0];
  for (const layer of manifest.layers) {
    const found = layers.sharing(layer);
    if (!found) return undefined;
    const alone = users.get(layer.id) === 1 ? found.exclusiveBytes : 0;
    exclusive_bytes += alone;
    shared_bytes += found.bytes - alone;
  }
  return { exclusive_bytes, shared_bytes };
}

/** Keeps the directory's entries true to what snapshots take, until the returned function is called. */
export function watchSizes(parts: Parts): () => void {
  let isLooking = false;
  const timer = every(lookMs, parts.log, "the sizes of snapshots could not be told", async () => {
    if (isLooking) return;
    isLooking = true;
    await look(parts).finally(() => {
      isLooking = false;
    });
  });
  return () => clearInterval(timer);
}

async function look(parts: Parts): Promise<void> {
  const { snapshots, sandboxes, log } = parts;
  const users = layerUsers(snapshots, sandboxes);
  for await (const record of yielding([...snapshots.all()])) {
    const sizes = sizesOf(parts, record, users);
    if (record.status !== "ready" || record.temporary || !sizes || !differs(record, sizes)) continue;
    await snapshots.noteSizes(record.id, sizes).catch((err) => log.debug({ err, snapshot: record.id }, "the sizes of a snapshot are told later"));
  }
}

function differs({ exclusive_bytes = -1, shared_bytes = -1 }: Sizes, now: Required<Sizes>): boolean {
  const isUntold = exclusive_bytes < 0 || shared_bytes < 0;
  return isUntold || Math.abs(exclusive_bytes - now.exclusive_bytes) > toldBytes || Math.abs(shared_bytes - now.shared_bytes) > toldBytes;
}
