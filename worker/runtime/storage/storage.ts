/** Where the files of sandboxes and the layers of snapshots lie. */
import { join } from "node:path";

export interface FileStorage {
  /** The folder that holds everything. */
  readonly dir: string;
  /** The command that makes the folder of a sandbox, whose parent exists. */
  makeCommand(dir: string): readonly string[];
  /** Removes the folder of a sandbox; does nothing if it does not exist. */
  remove(dir: string): Promise<void>;
}

/** The folder with the sandboxes of a storage. */
export const rootsOf = ({ dir }: Pick<FileStorage, "dir">): string => join(dir, "roots");
