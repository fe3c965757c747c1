/**
 * Layers in the JetStream object store, from where every worker can fetch them. A layer is there when its record is, and
 * the record is written last; what a killed worker leaves are pieces without a record, removed by the next `store` or
 * `remove` of that layer.
 */
import { randomUUID } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { JetStreamApiError, type JetStreamClient, type JetStreamManager, JsHeaders, jetstream, jetstreamManager } from "@nats-io/jetstream";
import { type ObjectInfo, type ObjectStore, Objm, StorageType } from "@nats-io/obj";
import { headers } from "@nats-io/transport-node";
import { SandgateError } from "../../shared/errors.ts";
import type { Logger } from "../../shared/log.ts";
import { type Bus, encodeJson } from "../../shared/nats.ts";
import { layerStore, layerSubjects } from "../../shared/subjects.ts";
import { packLayer, UnpackFailed, unpackDeepLayer, unpackLayer } from "../runtime/pack.ts";
import { emptyFolder, removeTree } from "../runtime/tree.ts";
import { Pieces, type WriteOptions } from "./pieces.ts";

/** How long the server may take for one piece. */
const timeoutMs = 30_000;
/** The server's code for a write that names another revision than the last. */
const wrongLastSequence = 10_071;

export class LayerArchive {
  readonly #bus: Bus;
  readonly #log: Logger;
  readonly #js: JetStreamClient;
  readonly #jsm: JetStreamManager;
  readonly #objects: ObjectStore;
  readonly #pieces: Pieces;

  private constructor(parts: { bus: Bus; log: Logger; js: JetStreamClient; jsm: JetStreamManager; objects: ObjectStore }) {
    this.#bus = parts.bus;
    this.#log = parts.log;
    this.#js = parts.js;
    this.#jsm = parts.jsm;
    this.#objects = parts.objects;
    this.#pieces = new Pieces(parts.bus, parts.js, parts.jsm);
  }

  /** @throws {SandgateError} `unavailable`. */
  static async open(bus: Bus, log: Logger): Promise<LayerArchive> {
    const js = jetstream(bus.connection, { timeout: timeoutMs });
    return bus.whileConnected(async () => {
      const objects = await new Objm(js).create(layerStore, { storage: StorageType.File });
      return new LayerArchive({ bus, log, js, objects, jsm: await jetstreamManager(bus.connection, { timeout: timeoutMs }) });
    });
  }

  /** Whether the layer can be fetched. @throws {SandgateError} `unavailable`. */
  async has(layerId: string): Promise<boolean> {
    return (await this.#record(layerId))?.deleted === false;
  }

  /**
   * Packs and stores a layer, unless it is there already. No two workers may do that for the same layer at once.
   *
   * @returns the bytes that it takes in the store.
   * @throws {SandgateError} `unavailable`, `internal_error`; the reason of the signal.
   */
  async store(layerId: string, dir: string, options: WriteOptions): Promise<number> {
    const present = await this.#record(layerId);
    if (present?.deleted === false) return present.size;
    await this.#pieces.purge(layerId);
    const attempt = randomUUID();
    const content = await this.#pieces.write(layerId, attempt, packLayer(dir, options.signal), options);
    await this.#putRecord({ ...content, name: layerId, bucket: layerStore, mtime: new Date().toISOString(), deleted: false });
    if ((await this.#pieces.count(layerId, attempt)) === content.chunks) return content.size;
    await this.remove(layerId);
    throw new SandgateError("unavailable", "the files of a snapshot were removed from the archive while they were stored");
  }

  /**
   * Fetches a layer into `dir`, which must not exist yet. It is complete when this resolves; after an error it is gone,
   * and after the death of this process there may be a part of it.
   *
   * @throws {SandgateError} `unavailable` also when the layer is not in the archive, `insufficient_storage`,
   *   `internal_error` when the archive is damaged; the reason of the signal.
   */
  async fetch(layerId: string, dir: string, signal: AbortSignal): Promise<void> {
    const record = await this.#record(layerId);
    if (!record || record.deleted) throw new SandgateError("unavailable", "files of the snapshot are not in the archive; its worker may still have them");
    await mkdir(dir, { mode: 0o700 });
    try {
      await unpackLayer(this.#pieces.read(layerId, record, signal), dir, signal).catch(async (error) => {
        if (!(error instanceof UnpackFailed)) throw error;
        await emptyFolder(dir);
        await unpackDeepLayer(this.#pieces.read(layerId, record, signal), dir, signal);
      });
    } catch (error) {
      await removeTree(dir).catch((cause) => this.#log.error({ err: cause, dir }, "a part of a layer could not be removed"));
      throw error;
    }
  }

  /** Removes a layer and whatever an interrupted `store` has left of it. @throws {SandgateError} `unavailable`. */
  async remove(layerId: string): Promise<void> {
    // First the record: a layer without its pieces must not be seen.
    await this.#bus.whileConnected(() => this.#jsm.streams.purge(layerSubjects.stream, { filter: layerSubjects.record(layerId) }));
    await this.#pieces.purge(layerId);
  }

  /** The layers that can be fetched. @throws {SandgateError} `unavailable`. */
  async list(): Promise<string[]> {
    const records = await this.#bus.whileConnected(() => this.#objects.list());
    return records.filter(({ deleted }) => !deleted).map(({ name }) => name);
  }

  /** Makes that a layer is not seen any more, until `show`. @throws {SandgateError} `unavailable`. */
  async hide(layerId: string): Promise<void> {
    await this.#mark(layerId, true);
  }

  /** Undoes `hide`, unless the layer was stored again meanwhile. @throws {SandgateError} `unavailable`. */
  async show(layerId: string): Promise<void> {
    await this.#mark(layerId, false);
  }

  async #mark(layerId: string, deleted: boolean): Promise<void> {
    const record = await this.#record(layerId);
    if (!record || record.deleted === deleted) return;
    const { name, bucket, nuid, size, chunks, digest, mtime, options, metadata, revision } = record;
    await this.#putRecord({ name, bucket, nuid, size, chunks, digest, mtime, deleted, ...(options && { options }), ...(metadata && { metadata }) }, revision);
  }

  async #record(layerId: string): Promise<ObjectInfo | undefined> {
    return (await this.#bus.whileConnected(() => this.#objects.info(layerId))) ?? undefined;
  }

  /** Replaces the record of revision `previous`, or whichever there is. A newer one stays. */
  async #putRecord(record: Omit<ObjectInfo, "revision">, previous?: number): Promise<void> {
    const replacing = headers();
    replacing.set(JsHeaders.RollupHdr, JsHeaders.RollupValueSubject);
    const options = { headers: replacing, ...(previous === undefined ? {} : { expect: { lastSubjectSequence: previous } }) };
    await this.#bus.whileConnected(async () => {
      try {
        await this.#js.publish(layerSubjects.record(record.name), encodeJson(record), options);
      } catch (error) {
        if (!(error instanceof JetStreamApiError && error.code === wrongLastSequence)) throw error;
      }
    });
  }
}
