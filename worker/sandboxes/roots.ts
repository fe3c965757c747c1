/** The files of sandboxes: an image, snapshot layers over it, and on top what the sandbox writes. */
import { existsSync } from "node:fs";
import { mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { baseLayerOf } from "../../shared/bus/snapshot-layers.ts";
import type { Images } from "../images/images.ts";
import { mergedOf, mountRoot, type Root, unmountRoot } from "../runtime/filesystem/overlay.ts";
import { syncTree } from "../runtime/filesystem/tree.ts";
import type { ImageLayers } from "../runtime/podman/images.ts";
import { ImageGone } from "../runtime/podman/podman.ts";
import { type FileStorage, rootsFolder } from "../runtime/storage/storage.ts";
import type { LayerArchive } from "../snapshots/archive.ts";
import type { Layers } from "../snapshots/layers.ts";
import type { RootSource } from "../store/records.ts";

/** The mounted files of a sandbox. */
export interface MountedRoot {
  readonly dir: string;
  /** What they were made from: the image is known now. */
  readonly source: RootSource;
}

interface Parts {
  readonly storage: FileStorage;
  readonly images: Images;
  readonly layers: Layers;
  readonly archive: LayerArchive;
  /** Receives the id of the image below each sandbox's files. */
  readonly mounted: Map<string, string>;
  /** A folder in memory of this worker. */
  readonly scratch: string;
  /** Aborts fetching layers. */
  readonly signal: AbortSignal;
}

export class Roots {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /**
   * Makes and mounts the files of a new sandbox, fetching missing layers first.
   *
   * @throws {SandgateError} `unprocessable` without the image, `unavailable` without a layer, `insufficient_storage`.
   */
  async make(sandboxId: string, source: RootSource): Promise<MountedRoot> {
    const { storage, scratch } = this.#parts;
    const { base, lowers } = await this.#below(sandboxId, source);
    const root = this.#rootOf(sandboxId);
    await mkdir(rootsFolder(storage), { recursive: true, mode: 0o700 });
    await mountRoot(root, { lowers, scratch, make: storage.makeCommand(root.dir) });
    const { layers, from } = source;
    return { dir: mergedOf(root), source: { base, layers, ...(from ? { from } : {}) } };
  }

  /** Mounts the files of a sandbox again. Mounts are gone after the machine, or Podman's namespace, was restarted. @throws as `make` does */
  async mount(sandboxId: string, source: RootSource): Promise<void> {
    const { lowers } = await this.#below(sandboxId, source);
    await mountRoot(this.#rootOf(sandboxId), { lowers, scratch: this.#parts.scratch });
  }

  /** Unmounts the files of a sandbox, if it has any here, and keeps them. */
  async unmount(sandboxId: string): Promise<void> {
    await unmountRoot(this.#rootOf(sandboxId));
  }

  /** Unmounts and removes the files of a sandbox, if it has any here. */
  async remove(sandboxId: string): Promise<void> {
    const root = this.#rootOf(sandboxId);
    if (existsSync(root.dir)) {
      await unmountRoot(root);
      await this.#parts.storage.remove(root.dir);
    }
    this.#parts.mounted.delete(sandboxId);
  }

  /** Removes the files of unknown sandboxes, and what was needed while files were mounted. */
  async removeStrays(isKnown: (sandboxId: string) => boolean): Promise<void> {
    const { storage, scratch } = this.#parts;
    await rm(scratch, { recursive: true, force: true });
    for (const sandboxId of await readdir(rootsFolder(storage)).catch(() => [])) if (!isKnown(sandboxId)) await this.remove(sandboxId);
  }

  /** The image and the folders below the sandbox's own, topmost first. */
  async #below(sandboxId: string, source: RootSource): Promise<Pick<ImageLayers, "base" | "lowers">> {
    const { images, layers, mounted } = this.#parts;
    const keep = (imageId: string): Promise<ImageLayers> => {
      mounted.set(sandboxId, imageId);
      return images.kept(imageId);
    };
    const { base, lowers } = source.over === undefined ? await this.#baseOf(source, keep) : await images.use(source.over, keep);
    for (const [index, { id }] of source.layers.entries()) await this.#fetch(id, source.from?.workerId, source.from?.layers[index] ?? id);
    return { base, lowers: [...source.layers.map(({ id }) => layers.dirOf(id)), ...lowers] };
  }

  /** The image, or its content from the archive, because an image built on another machine cannot be pulled by its name. */
  async #baseOf({ base, from }: RootSource, keep: (imageId: string) => Promise<ImageLayers>): Promise<Pick<ImageLayers, "base" | "lowers">> {
    try {
      return await keep(base.id);
    } catch (cause) {
      if (!(cause instanceof ImageGone)) throw cause;
      const id = baseLayerOf(base);
      await this.#fetch(id, from?.workerId, from?.base ?? id);
      return { base, lowers: [this.#parts.layers.dirOf(id)] };
    }
  }

  /** Makes sure that a layer is on this machine's disk. @param stored the layer's id in the archive. */
  async #fetch(id: string, workerId: string | undefined, stored: string): Promise<void> {
    const { archive, layers, signal } = this.#parts;
    await layers.make(id, async (dir) => {
      await archive.fetch({ workerId, layerId: stored }, dir, signal);
      await syncTree(dir);
    });
  }

  #rootOf(sandboxId: string): Root {
    return { dir: join(rootsFolder(this.#parts.storage), sandboxId) };
  }
}
