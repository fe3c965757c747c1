/** The files of restored sandboxes: layers of a snapshot over an image, with a writable folder of their own on top. */
import { mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import { SandgateError } from "../../shared/errors.ts";
import type { BaseImage } from "../../shared/schemas/messages.ts";
import { mergedOf, mountRoot, removeRoot } from "../runtime/overlay.ts";
import type { ImageLayers, Podman } from "../runtime/podman.ts";
import { syncTree } from "../runtime/tree.ts";
import type { LayerArchive } from "../snapshots/archive.ts";
import { imageLayerId } from "../snapshots/image-layers.ts";
import type { Layers } from "../snapshots/layers.ts";
import type { RootSource } from "../store.ts";

export class Roots {
  readonly #dir: string;
  readonly #podman: Podman;
  readonly #layers: Layers;
  readonly #archive: LayerArchive;
  readonly #signal: AbortSignal;

  /** @param parts.signal ends the fetching of layers. */
  constructor(dir: string, parts: { podman: Podman; layers: Layers; archive: LayerArchive; signal: AbortSignal }) {
    this.#dir = dir;
    this.#signal = parts.signal;
    this.#podman = parts.podman;
    this.#layers = parts.layers;
    this.#archive = parts.archive;
  }

  /**
   * Mounts the files of a sandbox; layers that are not here are fetched first.
   *
   * @throws {SandgateError} `unprocessable` without the image, `unavailable` without a layer, `insufficient_storage`.
   */
  async mount(sandboxId: string, source: RootSource): Promise<{ dir: string; base: BaseImage }> {
    const { base, lowers } = source.over ? await this.#podman.image(source.over) : await this.#baseOf(source.base);
    for (const { id } of source.layers) await this.#fetch(id);
    await mkdir(this.#dir, { recursive: true, mode: 0o700 });
    const root = { dir: join(this.#dir, sandboxId) };
    await mountRoot(root, [...source.layers.map(({ id }) => this.#layers.dirOf(id)), ...lowers]);
    return { dir: mergedOf(root), base };
  }

  /** Unmounts and removes the files of a sandbox; one that has none here is left alone. */
  async remove(sandboxId: string): Promise<void> {
    await removeRoot({ dir: join(this.#dir, sandboxId) });
  }

  /** Removes the files of sandboxes that are not known. */
  async removeStrays(isKnown: (sandboxId: string) => boolean): Promise<void> {
    for (const sandboxId of await readdir(this.#dir).catch(() => [])) if (!isKnown(sandboxId)) await this.remove(sandboxId);
  }

  /** The image, or its content from the archive: an image built on another machine cannot be had by its name. */
  async #baseOf(base: BaseImage): Promise<ImageLayers> {
    try {
      return await this.#podman.image(base.id);
    } catch (cause) {
      if (!(cause instanceof SandgateError) || cause.code !== "unprocessable") throw cause;
      const id = imageLayerId(base.id);
      await this.#fetch(id);
      return { base, lowers: [this.#layers.dirOf(id)] };
    }
  }

  /** Makes that a layer is here and on disk. */
  async #fetch(id: string): Promise<void> {
    await this.#layers.make(id, async (dir) => {
      await this.#archive.fetch(id, dir, this.#signal);
      await syncTree(dir);
    });
  }
}
