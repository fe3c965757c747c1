/** Where the files of sandboxes and the layers of snapshots lie. */
import { join } from "node:path";
import type { DiskUse } from "../filesystem/disk.ts";

export interface FileStorage {
  /** The folder that holds everything. */
  readonly dir: string;
  /** Whether folders are copied in no time, so that a sandbox starts with a layer's files as its own. Otherwise layers lie below them. */
  readonly copies: boolean;
  /** Whether the kernel limits and counts what a sandbox stores, deleted open files and file names included. */
  readonly limits: boolean;
  /** The command that makes the folder of a sandbox, whose parent exists. @param layer the folder of a layer to copy. */
  makeCommand(dir: string, layer?: string): readonly string[];
  /** Makes what is needed around a layer's own folder. */
  makeLayer(dir: string): Promise<void>;
  /** The layer's own folder. */
  contentOf(layer: string): string;
  /** Limits what the folder of a sandbox may take; has no effect unless `limits`. */
  limit(dir: string, bytes: number): Promise<void>;
  /** What the folder of a sandbox or a layer takes, or undefined when it could not be measured. */
  use(dir: string): Promise<DiskUse | undefined>;
  /** Removes the folder of a sandbox or a layer; does nothing if it does not exist. Its space may come back later. */
  remove(dir: string): Promise<void>;
}

/** The folders of a storage for sandboxes and for layers. */
export const rootsFolder = ({ dir }: Pick<FileStorage, "dir">): string => join(dir, "roots");
export const layersFolder = ({ dir }: Pick<FileStorage, "dir">): string => join(dir, "layers");

/** All storages of a worker. New files go to the first; the others hold what was made before there was a better one. */
export class Storages {
  readonly all: readonly FileStorage[];
  readonly first: FileStorage;

  constructor(first: FileStorage, ...others: readonly FileStorage[]) {
    this.all = [first, ...others];
    this.first = first;
  }

  /** The storage with this path; undefined for what Podman stores. */
  of(path: string): FileStorage | undefined {
    return this.all.find(({ dir }) => path.startsWith(`${dir}/`));
  }
}
