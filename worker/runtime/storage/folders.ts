/** Plain folders, on any file system. */
import { removeTree } from "../filesystem/tree.ts";
import type { FileStorage } from "./storage.ts";

export class Folders implements FileStorage {
  readonly dir: string;

  constructor(dir: string) {
    this.dir = dir;
  }

  makeCommand(dir: string): readonly string[] {
    return ["mkdir", "-m", "755", dir];
  }

  remove(dir: string): Promise<void> {
    return removeTree(dir);
  }
}
