/** Removes layers from the store when no snapshot needs them. Only gateways do so; workers may only add. */

import type { SnapshotEntry } from "../../shared/bus/entries.ts";
import { LayerRecords } from "../../shared/bus/layer-records.ts";
import type { Bus } from "../../shared/bus/nats.ts";
import { storedLayersOf } from "../../shared/bus/snapshot-layers.ts";
import { layerSubjects } from "../../shared/bus/subjects.ts";

/** Purged per request: while the server removes pieces, it answers nothing else on the connection, and gigabytes at once would break it. */
const purgedAtOnce = 16;

/** The layers of a worker that are needed. Must see every entry written before the call. */
type InUse = () => Promise<ReadonlySet<string>>;

/** Layers of a worker that are needed for something else than snapshots, by the same rule. */
type OnTheirWay = (workerId: string) => Promise<readonly string[]>;

export class LayerCollector {
  readonly #records: LayerRecords;
  readonly #onTheirWay: OnTheirWay;

  private constructor(records: LayerRecords, onTheirWay: OnTheirWay) {
    this.#records = records;
    this.#onTheirWay = onTheirWay;
  }

  static async open(bus: Bus, onTheirWay: OnTheirWay = async () => []): Promise<LayerCollector> {
    return new LayerCollector(await LayerRecords.open(bus), onTheirWay);
  }

  /**
   * Removes a worker's layers that no snapshot refers to. The worker may be taking a snapshot with one of them at this
   * moment: it writes its entry first and then looks for the layer in the store. This method hides the layer first and then
   * looks for entries, so that one of the two always notices the other.
   *
   * @returns the layers removed.
   * @throws {SandgateError} `unavailable`; then call it again.
   */
  async collect(workerId: string, layerIds: readonly string[], inUse: InUse): Promise<string[]> {
    const needed = async (): Promise<ReadonlySet<string>> => new Set([...(await inUse()), ...(await this.#onTheirWay(workerId))]);
    const before = await needed();
    const hidden = layerIds.filter((id) => !before.has(id));
    for (const id of hidden) await this.#records.mark(workerId, id, true);
    const after = hidden.length > 0 ? await needed() : before;
    const removed = hidden.filter((id) => !after.has(id));
    for (const id of removed) await this.remove(workerId, id);
    // Also unhides layers that an interrupted earlier call has hidden.
    for (const id of layerIds) if (!removed.includes(id)) await this.#records.mark(workerId, id, false);
    return removed;
  }

  /** Removes a layer, or the remains of one. @throws {SandgateError} `unavailable`. */
  async remove(workerId: string, layerId: string): Promise<void> {
    // The record first: a layer without its pieces must not be visible.
    await this.#purge(layerSubjects.record(workerId, layerId));
    await this.#purge(layerSubjects.pieces(workerId, layerId, "*"));
  }

  /**
   * Removes the remains of interrupted calls: layers of all workers that no snapshot needs, and pieces of failed attempts.
   * An attempt that may be in progress is left alone: its layer is needed and has no record yet.
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

  /** Removes the pieces of all attempts except the one that the record names. */
  async #dropAttempts(workerId: string, layerId: string): Promise<void> {
    const found = await this.#records.read(layerSubjects.record(workerId, layerId));
    if (!found) return;
    const attempt = found.record.nuid.slice(found.record.nuid.lastIndexOf(".") + 1);
    const kept = layerSubjects.pieces(workerId, layerId, attempt);
    for (const subject of Object.keys(await this.#records.subjects(layerSubjects.pieces(workerId, layerId, "*")))) {
      if (subject !== kept) await this.#purge(subject);
    }
  }

  /** Sweeps layers stored by versions before 0.2, which all workers share. */
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

const needed = ({ status, manifest }: SnapshotEntry): string[] => (status === "deleting" ? [] : storedLayersOf(manifest).map(({ id }) => id));

/** The layers that the snapshots of one worker need. */
export const neededOf = (snapshots: readonly SnapshotEntry[], workerId: string): ReadonlySet<string> =>
  new Set(snapshots.filter((entry) => entry.worker_id === workerId).flatMap(needed));
