/** Where the files of sandboxes and the layers of snapshots lie. */
import type { FileStorage } from "./storage.ts";
import type { Subvolumes } from "./subvolumes.ts";

/** All storages of a worker. With a volume, plain folders only hold what was made before there was one. */
export class Storages {
  /** Where new files go. */
  readonly first: FileStorage;
  readonly all: readonly FileStorage[];
  readonly #volume: Subvolumes | undefined;

  constructor(folders: FileStorage, volume: Subvolumes | undefined) {
    this.first = volume ?? folders;
    this.all = volume ? [volume, folders] : [folders];
    this.#volume = volume;
  }

  /** Whether the kernel limits what is stored below this path. */
  limits(path: string | undefined): boolean {
    return this.volumeOf(path)?.limits ?? false;
  }

  /** The volume, if this path is in it. */
  volumeOf(path: string | undefined): Subvolumes | undefined {
    return this.#volume && path?.startsWith(`${this.#volume.dir}/`) ? this.#volume : undefined;
  }
}
