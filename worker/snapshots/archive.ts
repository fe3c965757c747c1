/**
 * Layers in the JetStream object store, where every worker can fetch them. A layer exists when its record does. The record
 * is written last, so a killed worker leaves only pieces without a record. Each worker stores all layers that its own
 * snapshots need under its own name, and cannot change what other workers stored. Gateways remove layers no longer needed.
 */
import { randomUUID } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { type LayerRecord, LayerRecords } from "../../shared/bus/layer-records.ts";
import type { Bus } from "../../shared/bus/nats.ts";
import { layerSubjects } from "../../shared/bus/subjects.ts";
import { SandgateError } from "../../shared/errors.ts";
import type { Logger } from "../../shared/util/log.ts";
import { type BlockFile, blockFilesOf } from "../runtime/filesystem/block-header.ts";
import { fillBlocks } from "../runtime/filesystem/blocks.ts";
import { layerUse } from "../runtime/filesystem/disk.ts";
import { packLayer, UnpackFailed, unpackDeepLayer, unpackLayer } from "../runtime/filesystem/pack.ts";
import { emptyFolder, removeTree } from "../runtime/filesystem/tree.ts";
import { Pieces, type WriteOptions } from "./pieces.ts";

/** A layer in the archive. Without `workerId`, an earlier version stored it for all workers together. */
export interface StoredLayer {
  readonly workerId?: string | undefined;
  readonly layerId: string;
}

/** What is stored: a folder, or what is a stream already. */
export type LayerSource = string | ((signal: AbortSignal) => AsyncIterable<Uint8Array>);

interface FoundLayer {
  readonly record: LayerRecord;
  readonly pieces: string;
}

export class LayerArchive {
  readonly #workerId: string;
  readonly #log: Logger;
  readonly #records: LayerRecords;
  readonly #pieces: Pieces;

  private constructor(records: LayerRecords, workerId: string, log: Logger) {
    this.#records = records;
    this.#workerId = workerId;
    this.#log = log;
    this.#pieces = new Pieces(records);
  }

  /** Opens the store, which the gateways create. */
  static async open(bus: Bus, workerId: string, log: Logger): Promise<LayerArchive> {
    return new LayerArchive(await LayerRecords.open(bus), workerId, log);
  }

  /** Whether this worker has stored the layer. @throws {SandgateError} `unavailable`. */
  async has(layerId: string): Promise<boolean> {
    return (await this.#own(layerId))?.deleted === false;
  }

  /**
   * Packs and stores a layer, unless it is already stored. Must not run twice at once for the same layer.
   *
   * @returns the bytes that it takes in the store.
   * @throws {SandgateError} `unavailable`, `internal_error`; the reason of the signal.
   */
  async store(layerId: string, source: LayerSource, options: WriteOptions): Promise<number> {
    const present = await this.#own(layerId);
    if (present?.deleted === false) return present.size;
    const attempt = randomUUID();
    const pieces = layerSubjects.pieces(this.#workerId, layerId, attempt);
    const bytes = typeof source === "string" ? packLayer(source, options.signal) : source(options.signal);
    const content = { ...(await this.#pieces.write(pieces, bytes, options)), nuid: `${layerId}.${attempt}` };
    await this.#records.put(this.#workerId, { ...content, name: layerId, deleted: false });
    if ((await this.#records.count(pieces)) === content.chunks) return content.size;
    await this.#records.mark(this.#workerId, layerId, true);
    throw new SandgateError("unavailable", "the files of a snapshot were removed from the archive while they were stored");
  }

  /**
   * Fetches a layer into `dir`, which must not exist yet. The layer is complete when this resolves. After an error nothing is
   * left; if this process dies, a part of it may remain.
   *
   * @param below the folders of the layers that it lies over, topmost first
   * @throws {SandgateError} `unavailable`, also when the layer is not in the archive; `insufficient_storage`;
   *   `internal_error` when the archive is damaged; the reason of the signal.
   */
  async fetch(layer: StoredLayer, dir: string, signal: AbortSignal, below: readonly string[] = []): Promise<void> {
    const { record, pieces } = await this.#found(layer);
    const unpackBy = async (unpack: typeof unpackLayer): Promise<BlockFile[]> => {
      const { files, archive } = await blockFilesOf(this.#pieces.read(pieces, record, signal));
      await unpack(archive, dir, signal);
      return files;
    };
    await mkdir(dir, { mode: 0o700 });
    try {
      const files = await unpackBy(unpackLayer).catch(async (error) => {
        if (!(error instanceof UnpackFailed)) throw error;
        await emptyFolder(dir);
        return await unpackBy(unpackDeepLayer);
      });
      if (files.length > 0) await fillBlocks(dir, below, files, await bytesOf(below));
    } catch (error) {
      await removeTree(dir).catch((cause) => this.#log.error({ err: cause, dir }, "a part of a layer could not be removed"));
      throw error;
    }
  }

  /** What a worker has stored as a stream, fetched as it is consumed. @throws {SandgateError} as `fetch` */
  async *read(layer: StoredLayer, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    const { record, pieces } = await this.#found(layer);
    yield* this.#pieces.read(pieces, record, signal);
  }

  async #found(layer: StoredLayer): Promise<FoundLayer> {
    const found = await this.#find(layer);
    if (!found) throw new SandgateError("unavailable", "a part of the snapshot is not in the archive; its worker may still have it");
    return found;
  }

  async #own(layerId: string): Promise<LayerRecord | undefined> {
    return (await this.#records.read(layerSubjects.record(this.#workerId, layerId)))?.record;
  }

  /** The record that the worker stored, or else one of an earlier version, which no worker can write any more. */
  async #find({ workerId, layerId }: StoredLayer): Promise<FoundLayer | undefined> {
    const own = workerId === undefined ? undefined : (await this.#records.read(layerSubjects.record(workerId, layerId)))?.record;
    if (workerId !== undefined && own?.deleted === false) return { record: own, pieces: layerSubjects.pieces(workerId, layerId, attemptOf(own)) };
    const former = (await this.#records.read(layerSubjects.formerRecord(layerId)))?.record;
    return former && !former.deleted ? { record: former, pieces: layerSubjects.formerPieces(layerId, attemptOf(former)) } : undefined;
  }
}

/** What folders take on disk. */
async function bytesOf(dirs: readonly string[]): Promise<number> {
  let bytes = 0;
  for (const dir of dirs) bytes += (await layerUse(dir))?.bytes ?? 0;
  return bytes;
}

/** The attempt's name reduced to one safe subject token, since a hostile worker may have written anything there. */
const attemptOf = ({ nuid }: LayerRecord): string => nuid.slice(nuid.lastIndexOf(".") + 1).replace(/[^\w-]/g, "");
