/**
 * Stores snapshots as differences: where an earlier one of the same files is in the archive, a layer to lie over the layers of that
 * one. Those stay in the archive as long as a snapshot needs them, also when the earlier one has been deleted.
 */
import type { Layer, Manifest, SnapshotEntry } from "../../shared/bus/entries.ts";
import { newId } from "../../shared/util/ids.ts";
import type { Logger } from "../../shared/util/log.ts";
import { type BlockFile, withBlockFiles } from "../runtime/filesystem/block-header.ts";
import { keepBlocks } from "../runtime/filesystem/blocks.ts";
import { keepDifference } from "../runtime/filesystem/difference.ts";
import { layerUse } from "../runtime/filesystem/disk.ts";
import { packLayer } from "../runtime/filesystem/pack.ts";
import type { LayerArchive, LayerSource } from "./archive.ts";
import type { Layers } from "./layers.ts";
import type { Snapshots } from "./registry.ts";

/** A difference is looked for in layers from this size on, and stored if it takes no more than this part of one. */
const layerBytesMin = 1024 ** 2;
const worthPart = 1 / 2;
/** Files are looked up in one layer after the other. */
const layersMax = 16;

interface Parts {
  readonly snapshots: Snapshots;
  readonly layers: Layers;
  readonly archive: LayerArchive;
  /** What is to be in the archive besides. */
  readonly neededFor: (manifest: Pick<Manifest, "layers" | "base">) => readonly Layer[];
  readonly log: Logger;
}

/** What is left of a layer, and the files of which only some blocks are. */
interface Reduced {
  readonly bytes: number;
  readonly files: readonly BlockFile[];
}

export class Increments {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /**
   * Stores a snapshot as a difference, if there is an earlier one and the difference is small.
   *
   * @returns whether it is stored, with everything below; otherwise its own layers are to be
   * @throws {SandgateError} as `store` does, `unavailable`
   */
  async store(id: string, store: (layerId: string, source: LayerSource) => Promise<void>): Promise<boolean> {
    const { snapshots, layers } = this.#parts;
    const snapshot = snapshots.get(id);
    const [top] = snapshot?.manifest.layers ?? [];
    // What a difference lies over may be removed while a sandbox moves with it.
    if (!snapshot || !top || snapshot.temporary) return false;
    if (snapshot.manifest.stored) {
      if (await this.#hasAll(snapshot, snapshot.manifest.stored)) return true;
      // An attempt was interrupted. What it began with may be gone.
      await snapshots.noteLayers(id, undefined);
    }
    const earlier = this.#earlierThan(snapshot, top);
    const below = earlier ? storedOf(earlier) : [];
    if (!earlier || below.length >= layersMax) return false;
    return layers.withCopy(top.id, async (dir) => {
      const reduced = await this.#reduce(dir, top, earlier);
      if (!reduced || reduced.bytes > top.size_bytes * worthPart) return false;
      const difference = { id: newId("layer"), size_bytes: reduced.bytes };
      // Noted first, so that nobody removes from the archive what it lies over.
      await snapshots.noteLayers(id, [difference, ...below]);
      const isWhole = await this.#hasAll(snapshot, below);
      if (isWhole) await store(difference.id, (signal) => withBlockFiles(reduced.files, packLayer(dir, signal)));
      else await snapshots.noteLayers(id, undefined);
      return isWhole;
    });
  }

  /** @returns what is left, or undefined where the difference cannot be told. */
  async #reduce(dir: string, later: Layer, { id, created_at_ms, manifest }: SnapshotEntry): Promise<Reduced | undefined> {
    const { layers, log } = this.#parts;
    const [top] = manifest.layers;
    if (!top) return undefined;
    try {
      const [after, before] = [layers.dirOf(later.id), layers.dirOf(top.id)];
      await keepDifference(dir, after, { dir: before, madeAtMs: created_at_ms });
      const files = await keepBlocks(dir, after, before);
      const use = await layerUse(dir);
      // One that was removed meanwhile may have looked empty.
      return use && layers.has(top.id) && layers.has(later.id) ? { bytes: use.bytes, files } : undefined;
    } catch (err) {
      log.warn({ err, snapshot: id }, "a snapshot is stored whole, because its difference from an earlier one is unknown");
      return undefined;
    }
  }

  /** The latest archived snapshot that its own files are a later state of. */
  #earlierThan(snapshot: SnapshotEntry, top: Layer): SnapshotEntry | undefined {
    const { layers, snapshots } = this.#parts;
    const { source_sandbox_id, created_at_ms, origin, manifest } = snapshot;
    if (top.size_bytes < layerBytesMin || !layers.copyable(top.id)) return undefined;
    const isEarlier = (one: SnapshotEntry, its: Layer): boolean =>
      (one.source_sandbox_id === source_sandbox_id && one.created_at_ms < created_at_ms) || its.id === origin;
    const found = [...snapshots.all()].filter((one) => {
      const [its, ...below] = one.manifest.layers;
      if (!its || one.id === snapshot.id || one.status !== "ready" || one.archived !== "done") return false;
      const isAlike = one.manifest.base.id === manifest.base.id && idsOf(below) === idsOf(manifest.layers.slice(1));
      return isAlike && isEarlier(one, its) && layers.copyable(its.id) !== undefined;
    });
    return found.reduce<SnapshotEntry | undefined>((last, one) => (last && last.created_at_ms >= one.created_at_ms ? last : one), undefined);
  }

  async #hasAll({ manifest: { base } }: SnapshotEntry, layers: readonly Layer[]): Promise<boolean> {
    const { archive, neededFor } = this.#parts;
    for (const { id } of neededFor({ base, layers: [...layers] })) if (!(await archive.has(id))) return false;
    return true;
  }
}

const storedOf = ({ manifest }: SnapshotEntry): readonly Layer[] => manifest.stored ?? manifest.layers;
const idsOf = (layers: readonly Layer[]): string => layers.map(({ id }) => id).join();
