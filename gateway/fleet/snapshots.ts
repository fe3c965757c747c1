/** The snapshots of all workers, in memory. */
import type { SnapshotEntry } from "../../shared/bus/entries.ts";
import { storedLayersOf } from "../../shared/bus/snapshot-layers.ts";
import { Directory } from "./directory.ts";
import type { EntryMirror } from "./entries.ts";
import { type LayerCollector, neededOf } from "./layers.ts";

export class SnapshotDirectory extends Directory<SnapshotEntry> {
  readonly #layers: LayerCollector;

  constructor(mirror: EntryMirror<SnapshotEntry>, layers: LayerCollector) {
    super("snapshot", mirror);
    this.#layers = layers;
  }

  protected override isListed({ status }: SnapshotEntry): boolean {
    return status !== "deleting";
  }

  /** The snapshot that an attempt has made so far: a ready one before one in creation, before a failed one. */
  byAttempt(attemptId: string): SnapshotEntry | undefined {
    const made = [...this.mirror.values()].filter((entry) => entry.attempt_id === attemptId && this.isListed(entry));
    return made.find(({ status }) => status === "ready") ?? made.find(({ status }) => status === "creating") ?? made[0];
  }

  /** Marks the snapshot of an absent worker as deleted; the worker drops its files when it returns. False if it was already deleted. */
  async markDeleted(entry: SnapshotEntry): Promise<boolean> {
    let isFirst = false;
    await this.mirror.change(entry, (now) => {
      isFirst = this.isListed(now);
      return { ...now, status: "deleting" };
    });
    return isFirst;
  }

  /** Removes the layers of a deleted snapshot from the object store, unless another snapshot of its worker needs them. @param isMeant leaves others to the sweep */
  async dropLayers({ worker_id, manifest }: SnapshotEntry, isMeant: (layerId: string) => boolean = () => true): Promise<void> {
    const inUse = async (): Promise<ReadonlySet<string>> => {
      await this.caughtUp();
      return neededOf([...this.mirror.values()], worker_id);
    };
    const ids = storedLayersOf(manifest)
      .map(({ id }) => id)
      .filter(isMeant);
    await this.#layers.collect(worker_id, ids, inUse);
  }
}
