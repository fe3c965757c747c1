/** The files of restored sandboxes: snapshot layers over an image, topped by a writable layer. */
import { mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import type { BaseImage } from "../../shared/bus/entries.ts";
import { baseLayerOf } from "../../shared/bus/snapshot-layers.ts";
import type { Images } from "../images/images.ts";
import { mergedOf, mountRoot, removeRoot } from "../runtime/filesystem/overlay.ts";
import { syncTree } from "../runtime/filesystem/tree.ts";
import type { ImageLayers } from "../runtime/podman/images.ts";
import { ImageGone } from "../runtime/podman/podman.ts";
import type { LayerArchive } from "../snapshots/archive.ts";
import type { Layers } from "../snapshots/layers.ts";
import type { RootSource } from "../store/records.ts";

export class Roots {
  readonly #dir: string;
  readonly #images: Images;
  readonly #layers: Layers;
  readonly #archive: LayerArchive;
  readonly #signal: AbortSignal;
  readonly #mounted: Map<string, string>;

  /**
   * @param parts.mounted receives the id of the image below each sandbox's files
   * @param parts.signal aborts fetching layers
   */
  constructor(dir: string, parts: { images: Images; layers: Layers; archive: LayerArchive; mounted: Map<string, string>; signal: AbortSignal }) {
    this.#dir = dir;
    this.#mounted = parts.mounted;
    this.#signal = parts.signal;
    this.#images = parts.images;
    this.#layers = parts.layers;
    this.#archive = parts.archive;
  }

  /**
   * Mounts the files of a sandbox, fetching missing layers first.
   *
   * @throws {SandgateError} `unprocessable` without the image, `unavailable` without a layer, `insufficient_storage`.
   */
  async mount(sandboxId: string, source: RootSource): Promise<{ dir: string; base: BaseImage }> {
    const keep = (imageId: string): Promise<ImageLayers> => {
      this.#mounted.set(sandboxId, imageId);
      return this.#images.kept(imageId);
    };
    const { base, lowers } = source.over === undefined ? await this.#baseOf(source, keep) : await this.#images.use(source.over, keep);
    for (const [index, { id }] of source.layers.entries()) await this.#fetch(id, source.from?.workerId, source.from?.layers[index] ?? id);
    await mkdir(this.#dir, { recursive: true, mode: 0o700 });
    const root = { dir: join(this.#dir, sandboxId) };
    await mountRoot(root, [...source.layers.map(({ id }) => this.#layers.dirOf(id)), ...lowers]);
    return { dir: mergedOf(root), base };
  }

  /** Unmounts and removes the files of a sandbox, if it has any here. */
  async remove(sandboxId: string): Promise<void> {
    await removeRoot({ dir: join(this.#dir, sandboxId) });
    this.#mounted.delete(sandboxId);
  }

  /** Removes the files of unknown sandboxes. */
  async removeStrays(isKnown: (sandboxId: string) => boolean): Promise<void> {
    for (const sandboxId of await readdir(this.#dir).catch(() => [])) if (!isKnown(sandboxId)) await this.remove(sandboxId);
  }

  /** The image, or its content from the archive, because an image built on another machine cannot be pulled by its name. */
  async #baseOf({ base, from }: RootSource, keep: (imageId: string) => Promise<ImageLayers>): Promise<Pick<ImageLayers, "base" | "lowers">> {
    try {
      return await keep(base.id);
    } catch (cause) {
      if (!(cause instanceof ImageGone)) throw cause;
      const id = baseLayerOf(base);
      await this.#fetch(id, from?.workerId, from?.base ?? id);
      return { base, lowers: [this.#layers.dirOf(id)] };
    }
  }

  /** Makes sure that a layer is on this machine's disk. @param stored the layer's id in the archive. */
  async #fetch(id: string, workerId: string | undefined, stored: string): Promise<void> {
    await this.#layers.make(id, async (dir) => {
      await this.#archive.fetch({ workerId, layerId: stored }, dir, this.#signal);
      await syncTree(dir);
    });
  }
}
