/** The layers of this worker: folders that never change once complete, and are removed when nothing refers to them. */
import { mkdir, readdir, rename } from "node:fs/promises";
import { join } from "node:path";
import { layersOf } from "../../shared/bus/snapshot-layers.ts";
import type { Logger } from "../../shared/util/log.ts";
import { SingleFlight } from "../../shared/util/mutex.ts";
import { removeTree } from "../runtime/filesystem/tree.ts";
import type { Sandboxes } from "../sandboxes/registry.ts";
import type { Snapshots } from "./registry.ts";

const partialSuffix = ".partial";

export class Layers {
  readonly #dir: string;
  readonly #log: Logger;
  readonly #whole: Set<string>;
  readonly #making = new SingleFlight<void>();
  #removed = 0;

  private constructor(dir: string, log: Logger, whole: Set<string>) {
    this.#dir = dir;
    this.#log = log;
    this.#whole = whole;
  }

  /** Opens the folder of layers, and removes incomplete ones that an earlier process left. */
  static async open(dir: string, log: Logger): Promise<Layers> {
    await mkdir(dir, { recursive: true, mode: 0o700 });
    const names = await readdir(dir);
    for (const name of names.filter((each) => each.endsWith(partialSuffix))) await removeTree(join(dir, name));
    return new Layers(dir, log, new Set(names.filter((name) => !name.endsWith(partialSuffix))));
  }

  has(id: string): boolean {
    return this.#whole.has(id);
  }

  dirOf(id: string): string {
    return join(this.#dir, id);
  }

  /** Creates a layer, unless it exists: `fill` creates a folder, which becomes the layer when complete. */
  async make(id: string, fill: (dir: string) => Promise<void>): Promise<void> {
    if (this.has(id)) return;
    await this.#making.run(id, async () => {
      const partial = this.dirOf(id) + partialSuffix;
      await removeTree(partial);
      try {
        await fill(partial);
        await rename(partial, this.dirOf(id));
        this.#whole.add(id);
      } catch (error) {
        await removeTree(partial).catch((err) => this.#log.warn({ err, layer: id }, "an incomplete layer could not be removed"));
        throw error;
      }
    });
  }

  /**
   * Removes the layers that nothing refers to. Safe to run several times at once.
   *
   * @param inUse is asked again before each removal, because a sandbox may be restored meanwhile.
   */
  async collect(inUse: () => ReadonlySet<string>): Promise<void> {
    const before = inUse();
    for (const id of [...this.#whole].filter((each) => !before.has(each))) {
      if (inUse().has(id) || !this.#whole.delete(id)) continue;
      // Renamed first, so that a partly removed layer is never taken for a whole one. The name differs from that of a new fetch.
      const trash = `${this.dirOf(id)}.${this.#removed++}${partialSuffix}`;
      await rename(this.dirOf(id), trash);
      await removeTree(trash);
    }
  }
}

/** The layers that snapshots and sandboxes of this worker need. */
export function layersInUse(snapshots: Snapshots, sandboxes: Sandboxes): Set<string> {
  const ofSnapshots = [...snapshots.all()].flatMap(({ manifest }) => layersOf(manifest));
  const ofSandboxes = [...sandboxes.all()].flatMap(({ record }) => (record.root ? layersOf(record.root) : []));
  return new Set([...ofSnapshots, ...ofSandboxes].map(({ id }) => id));
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
