/** What each kind of place for the files of sandboxes and the layers of snapshots can do. */
import { join } from "node:path";

export interface DiskSharing {
  readonly bytes: number;
  readonly exclusiveBytes: number;
}

export interface FileStorage {
  /** The folder that holds everything. */
  readonly dir: string;
  /** Whether folders are copied in no time, so that a sandbox starts with a layer's files as its own. Otherwise layers lie below them. */
  readonly copies: boolean;
  /** Makes the folder of a sandbox, whose parent exists, limited to these bytes if the kernel can. */
  make(dir: string, bytes: number): Promise<void>;
  /** Makes the folder of a sandbox with the files of a layer, only if `copies`. */
  copy(layer: string, dir: string): Promise<void>;
  /** Makes what is needed around a layer's own folder. */
  makeLayer(dir: string): Promise<void>;
  /** Keeps a complete layer from being changed, if the file system can. */
  finishLayer(dir: string): Promise<void>;
  /** The layer's own folder. */
  contentOf(layer: string): string;
  /** Has the kernel limit what a folder may take, if it can. A copy has the limit of the original at first. */
  limit(dir: string, bytes: number): Promise<void>;
  /**
   * What a layer takes, and how much of that nothing else on the disk refers to, when the file system last wrote its state;
   * undefined where the kernel does not count it.
   */
  sharing(dir: string): DiskSharing | undefined;
  /**
   * Removes the folder of a sandbox or a layer; does nothing if it does not exist. If `copies`, it is gone in one step even on a
   * full disk, and its space comes back later.
   */
  remove(dir: string): Promise<void>;
}

/** Ends the names of folders that are not complete, or not any more; a start removes them. */
export const partialSuffix = ".partial";

/** The folders of a storage for sandboxes and for layers. */
export const rootsFolder = ({ dir }: Pick<FileStorage, "dir">): string => join(dir, "roots");
export const layersFolder = ({ dir }: Pick<FileStorage, "dir">): string => join(dir, "layers");
