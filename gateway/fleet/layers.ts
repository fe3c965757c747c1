/** Removing layers from the store when no snapshot needs them: by gateways alone, since workers may only add. */

import type { SnapshotEntry } from "../../shared/bus/entries.ts";
import { LayerRecords } from "../../shared/bus/layer-records.ts";
import type { Bus } from "../../shared/bus/nats.ts";
import { layersOf } from "../../shared/bus/snapshot-layers.ts";
import { layerSubjects } from "../../shared/bus/subjects.ts";

/** While the server removes pieces it answers nothing else on the connection: gigabytes at once would break it. */
const purgedAtOnce = 16;

/** What of a worker's layers is needed; must see every entry that was written before it is called. */
export type InUse = () => Promise<ReadonlySet<string>>;

export class LayerCollector {
  readonly #records: LayerRecords;

  private constructor(records: LayerRecords) {
    this.#records = records;
  }

  static async open(bus: Bus): Promise<LayerCollector> {
    return new LayerCollector(await LayerRecords.open(bus));
  }

  /**
   * Removes those of a worker's layers that no snapshot refers to. The worker may be making a snapshot with one of them just
   * now: it writes its entry first and looks for the layer in the store then. Here the layer is hidden first and asked about
   * then, so that one of both always notices the other.
   *
   * @returns the layers removed.
   * @throws {SandgateError} `unavailable`; then it is to be called again.
   */
  async collect(workerId: string, layerIds: readonly string[], inUse: InUse): Promise<string[]> {
    const before = await inUse();
    const hidden = layerIds.filter((id) => !before.has(id));
    for (const id of hidden) await this.#records.mark(workerId, id, true);
    const after = hidden.length > 0 ? await inUse() : before;
    const removed = hidden.filter((id) => !after.has(id));
    for (const id of removed) await this.remove(workerId, id);
    // Also what an earlier call hid and could not finish.
    for (const id of layerIds) if (!removed.includes(id)) await this.#records.mark(workerId, id, false);
    return removed;
  }

  /** Removes a layer and whatever an interrupted attempt has left of it. @throws {SandgateError} `unavailable`. */
  async remove(workerId: string, layerId: string): Promise<void> {
    // First the record: a layer without its pieces must not be seen.
    await this.#purge(layerSubjects.record(workerId, layerId));
    await this.#purge(layerSubjects.pieces(workerId, layerId, "*"));
  }

  /**
   * Removes what calls that broke off have left: layers of all workers that no snapshot needs, and the pieces of attempts
   * that came to nothing. An attempt that may be under way is left alone: its layer is needed and has no record yet.
   */
  async sweep(snapshots: () => Promise<readonly SnapshotEntry[]>): Promise<void> {
    const inUseBy = async (workerId: string): Promise<ReadonlySet<string>> => neededOf(await snapshots(), workerId);
    const layers = new Map<string, Set<string>>();
    for (const subject of Object.keys({ ...(await this.#records.subjects(allRecords)), ...(await this.#records.subjects(allPieces)) })) {
      const [workerId = "", layerId = ""] = subject.split(".").slice(3);
      layers.set(workerId, (layers.get(workerId) ?? new Set()).add(layerId));
    }
    for (const [workerId, ids] of layers) {
      const removed = new Set(await this.collect(workerId, [...ids], () => inUseBy(workerId)));
      for (const id of ids) if (!removed.has(id)) await this.#dropAttempts(workerId, id);
    }
    await this.#sweepFormer(snapshots);
  }

  /** Removes the pieces of all attempts but the one that the record names. */
  async #dropAttempts(workerId: string, layerId: string): Promise<void> {
    const found = await this.#records.read(layerSubjects.record(workerId, layerId));
    if (!found) return;
    const attempt = found.record.nuid.slice(found.record.nuid.lastIndexOf(".") + 1);
    const kept = layerSubjects.pieces(workerId, layerId, attempt);
    for (const subject of Object.keys(await this.#records.subjects(layerSubjects.pieces(workerId, layerId, "*")))) {
      if (subject !== kept) await this.#purge(subject);
    }
  }

  /** What versions before 0.2 stored, which belongs to all workers together. */
  async #sweepFormer(snapshots: () => Promise<readonly SnapshotEntry[]>): Promise<void> {
    const ids = new Set(Object.keys(await this.#records.subjects(layerSubjects.formerPieces("*", "*"))).map((subject) => subject.split(".")[3] ?? ""));
    const inUse = ids.size > 0 ? new Set((await snapshots()).flatMap(needed)) : new Set();
    for (const id of ids) {
      if (inUse.has(id)) continue;
      await this.#purge(layerSubjects.formerRecord(id));
      await this.#purge(layerSubjects.formerPieces(id, "*"));
    }
  }

  async #purge(filter: string): Promise<void> {
    const { bus, jsm } = this.#records;
    for (let left = await this.#records.count(filter); left > 0; ) {
      left = Math.max(0, left - purgedAtOnce);
      const keep = left > 0 ? { keep: left } : {};
      await bus.whileConnected(() => jsm.streams.purge(layerSubjects.stream, { filter, ...keep }));
    }
  }
}

const allRecords = layerSubjects.record("*", "*");
const allPieces = layerSubjects.pieces("*", "*", "*");

const needed = ({ status, manifest }: SnapshotEntry): string[] => (status === "deleting" ? [] : layersOf(manifest).map(({ id }) => id));

/** The layers that the snapshots of one worker need. */
export const neededOf = (snapshots: readonly SnapshotEntry[], workerId: string): ReadonlySet<string> =>
  new Set(snapshots.filter((entry) => entry.worker_id === workerId).flatMap(needed));
