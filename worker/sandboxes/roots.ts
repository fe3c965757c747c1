/** The files of sandboxes: an image, snapshot layers over it, and on top what the sandbox writes. */
import { existsSync } from "node:fs";
import { mkdir, readdir, rmdir } from "node:fs/promises";
import { join } from "node:path";
import type { BaseImage, Layer } from "../../shared/bus/entries.ts";
import { baseLayerOf, isFetchedLayer } from "../../shared/bus/snapshot-layers.ts";
import { step } from "../../shared/tracing/spans.ts";
import type { Images } from "../images/images.ts";
import { mountEmpty } from "../runtime/filesystem/empty.ts";
import { refusePipes } from "../runtime/filesystem/inside.ts";
import { type MountOptions, mergedOf, mountRoot, type Root, unmountRoot, writableOf } from "../runtime/filesystem/overlay.ts";
import { syncTree } from "../runtime/filesystem/tree.ts";
import type { Ids } from "../runtime/ids/open.ts";
import { firstIdOf } from "../runtime/ids/ranges.ts";
import type { ImageLayers } from "../runtime/podman/images.ts";
import { ImageGone } from "../runtime/podman/podman.ts";
import type { ContainerSpec } from "../runtime/podman/spec.ts";
import { type FileStorage, rootsFolder } from "../runtime/storage/storage.ts";
import type { Storages } from "../runtime/storage/storages.ts";
import type { LayerArchive } from "../snapshots/archive.ts";
import type { Layers } from "../snapshots/layers.ts";
import type { RootSource } from "../store/records.ts";

/** What the mount and the container of a sandbox may take beyond its own limit. */
const startBytes = 16 * 1024 ** 2;

/** The mounted files of a sandbox. */
export interface MountedRoot {
  readonly dir: string;
  /** What they are called for its container. */
  readonly stage: string;
  /** Whose ids they have in its container; undefined for those of the worker. */
  readonly range: number | undefined;
  /** What they were made from: the image is known now. */
  readonly source: RootSource;
}

/** What a container is made on; its root may not be mounted yet. */
export type RootPlace = Omit<MountedRoot, "dir" | "source">;

/** What the files of a sandbox are made from, all of it on the disk. */
export interface Provided {
  readonly source: RootSource;
  readonly base: BaseImage;
  /** The folders of the image's layers. */
  readonly image: readonly string[];
}

/** Whose files they are. */
type Owner = Pick<ContainerSpec, "sandboxId">;

interface Parts {
  readonly storages: Storages;
  readonly images: Images;
  readonly layers: Layers;
  readonly archive: LayerArchive;
  readonly ids: Ids;
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
   * Makes sure that all that a new sandbox is made from is on this machine's disk, which may take long.
   *
   * @throws {SandgateError} `unprocessable` without the image, `unavailable` without a layer, `insufficient_storage`.
   */
  async provide({ sandboxId }: Owner, source: RootSource): Promise<Provided> {
    return { source, ...(await this.#prepare(sandboxId, source)) };
  }

  /**
   * Where `make` will mount the files of a new sandbox, if that is known before: its container can be made meanwhile. On failure all of
   * it is removed as the files are.
   */
  place(owner: Owner, provided: Provided): RootPlace | undefined {
    const { sandboxId } = owner;
    const { root, lowers } = this.#planOf(sandboxId, provided);
    const range = this.#rangeFor(owner, [root.dir, ...lowers]);
    return range === undefined ? undefined : { range, stage: this.#parts.ids.ranges?.makeStage(sandboxId, range) ?? "" };
  }

  /** Where a container is made that has no files yet: an empty folder in memory, which the container keeps when `leavePlace` takes it away here. */
  async placeEmpty({ sandboxId }: Owner): Promise<RootPlace> {
    const { ranges, areGiven } = this.#parts.ids;
    const range = areGiven ? ranges?.take(sandboxId) : undefined;
    const stage = ranges && range !== undefined ? ranges.makeStage(sandboxId, range) : mergedOf(rootIn(this.#parts.storages.first, sandboxId));
    await mkdir(stage, { recursive: true });
    mountEmpty(stage, range === undefined ? 0 : firstIdOf(range));
    return { stage, range };
  }

  /** Ends that; also unmounts files that are there instead. */
  async leavePlace({ sandboxId }: Owner): Promise<void> {
    const root = this.#everywhere(sandboxId);
    await unmountRoot(root);
    for (const dir of [mergedOf(root), root.dir]) await rmdir(dir).catch(() => {}); // There is none, or it has files.
  }

  /**
   * Makes and mounts the files of a new sandbox. To be limited by `limit` once it has started, which takes a little space even
   * where the sandbox has used up its own.
   *
   * @param bytes what it may take
   * @throws {SandgateError} `insufficient_storage`
   */
  async make(owner: Owner, provided: Provided, bytes: number): Promise<MountedRoot> {
    const {
      storages: { first: storage },
      scratch,
    } = this.#parts;
    const { root, lowers, copied, below } = this.#planOf(owner.sandboxId, provided);
    await mkdir(rootsFolder(storage), { recursive: true, mode: 0o700 });
    if (copied) {
      await storage.copy(copied, root.dir);
      await limitForStart(storage, root.dir, bytes);
    } else await storage.make(root.dir, bytes);
    const { over: _over, ...found } = below;
    const options = { lowers, scratch, isNew: !copied };
    return { ...(await this.#mount(owner, root, options)), source: { ...found, base: provided.base } };
  }

  /** How the files of a new sandbox are made: over which folders, and whether its own begin as a copy of the topmost layer. */
  #planOf(sandboxId: string, { source, image }: Provided) {
    const { storages, layers } = this.#parts;
    const [top] = source.layers;
    const copied = top && layers.copyable(top.id);
    const below = top && copied ? withoutTop(source, top) : source;
    return { root: rootIn(storages.first, sandboxId), lowers: this.#lowers(below, image), copied, below };
  }

  /** A range of ids of its own where that can be had. */
  #rangeFor({ sandboxId }: Owner, folders: readonly string[]): number | undefined {
    const { ranges, areGiven } = this.#parts.ids;
    const canHave = areGiven && ranges && folders.every((dir) => ranges.canShow(dir));
    return canHave ? ranges.take(sandboxId) : undefined;
  }

  /** Mounts the files of a sandbox again, as `make` does. Mounts are gone after the machine, or Podman's namespace, was restarted. */
  async mount(owner: Owner, source: RootSource, bytes: number): Promise<MountedRoot> {
    const { sandboxId } = owner;
    const { image } = await this.#prepare(sandboxId, source);
    const root = this.#rootOf(sandboxId);
    // It may have had other ids, under an earlier process that was killed.
    await this.unmount(sandboxId);
    if (existsSync(root.dir)) await limitForStart(this.#storageOf(sandboxId), root.dir, bytes);
    return { ...(await this.#mount(owner, root, { lowers: this.#lowers(source, image), scratch: this.#parts.scratch })), source };
  }

  /** Whether a sandbox has files here. */
  has(sandboxId: string): boolean {
    return existsSync(this.#rootOf(sandboxId).dir);
  }

  /** The folder into which a sandbox writes, if it is one of ours. */
  writable(sandboxId: string): string | undefined {
    const dir = writableOf(this.#rootOf(sandboxId));
    return existsSync(dir) ? dir : undefined;
  }

  /** @throws {SandgateError} `unprocessable` for files that no container can start on */
  async #mount(owner: Owner, root: Root, options: MountOptions): Promise<Omit<MountedRoot, "source">> {
    const mounted = await this.#mountAs(owner, root, options);
    refusePipes(mounted.dir);
    return mounted;
  }

  async #mountAs(owner: Owner, root: Root, options: MountOptions): Promise<Omit<MountedRoot, "source">> {
    const { sandboxId } = owner;
    const { ranges } = this.#parts.ids;
    const range = this.#rangeFor(owner, [root.dir, ...options.lowers]);
    const dir = mergedOf(root);
    if (!ranges || range === undefined) {
      ranges?.claims.release(sandboxId);
      await mountRoot(root, options);
      return { dir, stage: dir, range: undefined };
    }
    const stage = ranges.stageOf(sandboxId);
    await ranges.show(sandboxId, range, (place) => mountRoot({ ...root, stage }, { ...options, place }));
    return { dir, stage, range };
  }

  /** With all places where it may be mounted. */
  #everywhere(sandboxId: string): Root {
    return { ...this.#rootOf(sandboxId), stage: this.#parts.ids.stageOf(sandboxId) };
  }

  /** Limits what a sandbox may store, where the kernel can. */
  async limit(sandboxId: string, bytes: number): Promise<void> {
    const { dir } = this.#rootOf(sandboxId);
    if (existsSync(dir)) await this.#storageOf(sandboxId).limit(dir, bytes);
  }

  /** Unmounts the files of a sandbox, if it has any here, and keeps them. */
  async unmount(sandboxId: string): Promise<void> {
    await unmountRoot(this.#everywhere(sandboxId));
  }

  /** Unmounts and removes the files of a sandbox, if it has any here. */
  async remove(sandboxId: string): Promise<void> {
    await this.vacate({ sandboxId });
    await this.#parts.ids.ranges?.release(sandboxId);
  }

  /** The same for one that is to get others: it keeps its ids. */
  async vacate({ sandboxId }: Owner): Promise<void> {
    await this.leavePlace({ sandboxId });
    const { dir } = this.#rootOf(sandboxId);
    if (existsSync(dir)) await this.#storageOf(sandboxId).remove(dir);
    this.#parts.mounted.delete(sandboxId);
  }

  /** Removes the files of unknown sandboxes. */
  async removeStrays(isKnown: (sandboxId: string) => boolean): Promise<void> {
    for (const storage of this.#parts.storages.all) {
      for (const sandboxId of await readdir(rootsFolder(storage)).catch(() => [])) if (!isKnown(sandboxId)) await this.remove(sandboxId);
    }
  }

  /** Makes sure that all that a sandbox is made from is on this machine's disk. @returns the image, and the folders of its layers. */
  async #prepare(sandboxId: string, source: RootSource): Promise<Omit<Provided, "source">> {
    const { images, mounted } = this.#parts;
    const keep = (imageId: string): Promise<ImageLayers> => {
      mounted.set(sandboxId, imageId);
      return images.kept(imageId);
    };
    const { base, lowers } = source.over === undefined ? await this.#baseOf(source, keep) : await images.use(source.over, keep);
    // The lowest first: of a file, those above may have only what is unlike that in one below.
    for (const [index, { id }] of [...source.layers.entries()].reverse()) {
      const below = source.layers.slice(index + 1).map((layer) => this.#parts.layers.dirOf(layer.id));
      await this.#fetch(id, source.from?.workerId, source.from?.layers[index] ?? id, below);
    }
    return { base, image: lowers };
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

  /** Makes sure that a layer is on this machine's disk. @param stored the layer's id in the archive @param below the folders of the layers under it */
  async #fetch(id: string, workerId: string | undefined, stored: string, below: readonly string[] = []): Promise<void> {
    const { archive, layers, signal } = this.#parts;
    await layers.make(id, async (dir) => {
      await step("layer.fetch", () => archive.fetch({ workerId, layerId: stored }, dir, signal, below));
      await syncTree(dir);
    });
  }

  /** The folders below the sandbox's own, topmost first. */
  #lowers({ layers }: RootSource, image: readonly string[]): string[] {
    return [...layers.map(({ id }) => this.#parts.layers.dirOf(id)), ...image];
  }

  #rootOf(sandboxId: string): Root {
    return rootIn(this.#storageOf(sandboxId), sandboxId);
  }

  #storageOf(sandboxId: string): FileStorage {
    const { all, first } = this.#parts.storages;
    return all.find((storage) => existsSync(rootIn(storage, sandboxId).dir)) ?? first;
  }
}

const rootIn = (storage: FileStorage, sandboxId: string): Root => ({ dir: join(rootsFolder(storage), sandboxId) });

/** Limits a folder whose container is yet to start, which a full one could not. To set a limit takes longer than to copy the files. */
async function limitForStart(storage: FileStorage, dir: string, bytes: number): Promise<void> {
  const taken = storage.sharing(dir)?.bytes;
  const hasRoom = taken !== undefined && taken + startBytes <= bytes;
  await storage.limit(dir, hasRoom ? bytes : bytes + startBytes);
}

/** What remains below a sandbox whose own files began as the topmost layer. */
function withoutTop(source: RootSource, top: Layer): RootSource {
  const { layers, from } = source;
  const began = isFetchedLayer(top.id) ? { fetched: top } : { origin: top.id };
  return { ...source, ...began, layers: layers.slice(1), ...(from ? { from: { ...from, layers: from.layers.slice(1) } } : {}) };
}
