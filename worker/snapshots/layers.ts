/** The layers of this worker: folders that never change once complete, and are removed when nothing refers to them. */
import { randomUUID } from "node:crypto";
import { mkdir, readdir, rename } from "node:fs/promises";
import { join } from "node:path";
import type { Layer } from "../../shared/bus/entries.ts";
import { layersOf } from "../../shared/bus/snapshot-layers.ts";
import type { Logger } from "../../shared/util/log.ts";
import { SingleFlight } from "../../shared/util/mutex.ts";
import { syncTree } from "../runtime/filesystem/tree.ts";
import { type DiskSharing, type FileStorage, layersFolder, partialSuffix } from "../runtime/storage/storage.ts";
import type { Storages } from "../runtime/storage/storages.ts";
import type { Sandboxes } from "../sandboxes/registry.ts";
import type { Snapshots } from "./registry.ts";

export class Layers {
  readonly #storages: Storages;
  readonly #log: Logger;
  /** The complete layers, and where each is. */
  readonly #whole: Map<string, FileStorage>;
  readonly #making = new SingleFlight<void>();
  #removed = 0;

  private constructor(storages: Storages, log: Logger, whole: Map<string, FileStorage>) {
    this.#storages = storages;
    this.#log = log;
    this.#whole = whole;
  }

  /** Opens the folders of layers, and removes incomplete ones that an earlier process left. */
  static async open(storages: Storages, log: Logger): Promise<Layers> {
    const whole = new Map<string, FileStorage>();
    for (const storage of storages.all.toReversed()) {
      await mkdir(layersFolder(storage), { recursive: true, mode: 0o700 });
      const names = await readdir(layersFolder(storage));
      for (const name of names.filter((each) => each.endsWith(partialSuffix))) await storage.remove(join(layersFolder(storage), name));
      for (const name of names.filter((each) => !each.endsWith(partialSuffix))) whole.set(name, storage);
    }
    return new Layers(storages, log, whole);
  }

  has(id: string): boolean {
    return this.#whole.has(id);
  }

  /** The folder with the layer's files. */
  dirOf(id: string): string {
    const storage = this.#storageOf(id);
    return storage.contentOf(join(layersFolder(storage), id));
  }

  /** What a sandbox can start with a copy of, instead of lying over the layer; undefined where nothing is copied in no time. */
  copyable(id: string): string | undefined {
    const { first } = this.#storages;
    return first.copies && this.#whole.get(id) === first ? join(layersFolder(first), id) : undefined;
  }

  /** Runs work with a copy of a `copyable` layer, which it may change. */
  async withCopy<T>(id: string, work: (dir: string) => Promise<T>): Promise<T> {
    const { first } = this.#storages;
    const copy = join(layersFolder(first), `${randomUUID()}${partialSuffix}`);
    try {
      await first.copy(join(layersFolder(first), id), copy);
      return await work(first.contentOf(copy));
    } finally {
      await this.#discard(first, copy);
    }
  }

  /**
   * What a layer of this worker takes on disk, and how much of that nothing but it refers to. In plain folders, where nothing is
   * shared below the level of layers, that is all of its size. Undefined if that is unknown.
   */
  sharing({ id, size_bytes }: Layer): DiskSharing | undefined {
    const storage = this.#whole.get(id);
    if (!storage?.copies) return storage && { bytes: size_bytes, exclusiveBytes: size_bytes };
    return storage.sharing(join(layersFolder(storage), id));
  }

  /** Creates a layer, unless it exists: `fill` creates a folder, which becomes the layer when complete. */
  async make(id: string, fill: (dir: string) => Promise<void>): Promise<void> {
    const { first } = this.#storages;
    await this.#once(id, async (whole) => {
      const partial = whole + partialSuffix;
      await first.remove(partial);
      try {
        await first.makeLayer(partial);
        await fill(first.contentOf(partial));
        await first.finishLayer(partial);
        await rename(partial, whole);
        // Records that count on it are on another file system, which does not bring this to disk.
        if (first.copies) await syncTree(layersFolder(first));
      } catch (error) {
        await this.#discard(first, partial);
        throw error;
      }
    });
  }

  /** Creates a layer by a function that makes it complete in one step, at the path that it is given. */
  async adopt(id: string, take: (dir: string) => Promise<void>): Promise<void> {
    await this.#once(id, async (whole) => {
      try {
        await take(whole);
      } catch (error) {
        await this.#discard(this.#storages.first, whole);
        throw error;
      }
    });
  }

  /**
   * Removes the layers that nothing refers to. Safe to run several times at once.
   *
   * @param inUse is asked again before each removal, because a sandbox may be restored meanwhile.
   */
  async collect(inUse: () => Pick<ReadonlySet<string>, "has">): Promise<void> {
    const before = inUse();
    for (const [id, storage] of [...this.#whole].filter(([each]) => !before.has(each))) {
      if (inUse().has(id) || !this.#whole.delete(id)) continue;
      await this.#remove(storage, join(layersFolder(storage), id)).catch((error: unknown) => {
        this.#whole.set(id, storage);
        throw error;
      });
    }
  }

  async #remove(storage: FileStorage, layer: string): Promise<void> {
    if (storage.copies) return storage.remove(layer);
    // Renamed first, so that a partly removed layer is never taken for a whole one. The name differs from that of a new fetch.
    const trash = `${layer}.${this.#removed++}${partialSuffix}`;
    await rename(layer, trash);
    await this.#discard(storage, trash);
  }

  async #once(id: string, make: (dir: string) => Promise<void>): Promise<void> {
    if (this.has(id)) return;
    const { first } = this.#storages;
    await this.#making.run(id, async () => {
      await make(join(layersFolder(first), id));
      this.#whole.set(id, first);
    });
  }

  async #discard(storage: FileStorage, dir: string): Promise<void> {
    await storage.remove(dir).catch((err) => this.#log.warn({ err, dir }, "an incomplete layer could not be removed"));
  }

  #storageOf(id: string): FileStorage {
    return this.#whole.get(id) ?? this.#storages.first;
  }
}

/** The layers that snapshots and sandboxes of this worker need, with how many of them do. */
export function layerUsers(snapshots: Snapshots, sandboxes: Sandboxes): Map<string, number> {
  const ofSnapshots = [...snapshots.all()].flatMap(({ manifest }) => layersOf(manifest));
  const ofSandboxes = [...sandboxes.all()].flatMap(({ record: { root } }) => (root ? [...layersOf(root), ...(root.fetched ? [root.fetched] : [])] : []));
  const users = new Map<string, number>();
  for (const { id } of [...ofSnapshots, ...ofSandboxes]) users.set(id, (users.get(id) ?? 0) + 1);
  return users;
}

/**
 * Images in use that Podman does not know about, because the files of sandboxes lie, or will lie, over them.
 *
 * @param parts.mounted the images below the files of restored sandboxes, by sandbox id
 * @param parts.inArchive whether the archive also holds the images of archived snapshots
 */
export function imagesNeeded(parts: { sandboxes: Sandboxes; snapshots: Snapshots; mounted: ReadonlyMap<string, string>; inArchive: boolean }): Set<string> {
  const ofSandboxes = [...parts.sandboxes.all()].map(({ record }) => record.root?.base.id);
  const ofSnapshots = [...parts.snapshots.all()].map(({ archived, manifest }) => (archived === "done" && parts.inArchive ? undefined : manifest.base.id));
  const all = [...ofSandboxes, ...ofSnapshots, ...parts.mounted.values()];
  return new Set(all.filter((id): id is string => Boolean(id)));
}
