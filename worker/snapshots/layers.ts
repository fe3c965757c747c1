/** The layers of this worker: folders that never change once they are whole, and go when nobody refers to them. */
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

  /** Opens the folder of layers; what a former process left half-made is removed. */
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

  /** Makes a layer: `fill` makes a folder, which becomes the layer when it is done. One that is there is left alone. */
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
        await removeTree(partial).catch((err) => this.#log.warn({ err, layer: id }, "a half-made layer could not be removed"));
        throw error;
      }
    });
  }

  /**
   * Removes the layers that nobody refers to; several may do that at the same time.
   *
   * @param inUse is asked again before each one: a sandbox may be restored while others are being removed.
   */
  async collect(inUse: () => ReadonlySet<string>): Promise<void> {
    const before = inUse();
    for (const id of [...this.#whole].filter((each) => !before.has(each))) {
      if (inUse().has(id) || !this.#whole.delete(id)) continue;
      // Renamed first: half a layer must never be taken for a whole one. Where nobody who fetches it anew puts his.
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
