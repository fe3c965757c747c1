/** Plain folders, on any file system. */
import { removeTree } from "../filesystem/tree.ts";
import type { FileStorage } from "./storage.ts";

export class Folders implements FileStorage {
  readonly dir: string;
  readonly copies = false;

  constructor(dir: string) {
    this.dir = dir;
  }

  makeCommand(dir: string): readonly string[] {
    return ["mkdir", "-m", "755", dir];
  }

  copy(): Promise<void> {
    throw new Error("plain folders are not copied");
  }

  async makeLayer(): Promise<void> {}

  contentOf(layer: string): string {
    return layer;
  }

  async limit(): Promise<void> {}

  sharing(): undefined {}

  remove(dir: string): Promise<void> {
    return removeTree(dir);
  }
}
