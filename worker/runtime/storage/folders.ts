/** Plain folders, on any file system. */
import { type DiskUse, layerUse } from "../filesystem/disk.ts";
import { removeTree } from "../filesystem/tree.ts";
import type { FileStorage } from "./storage.ts";

export class Folders implements FileStorage {
  readonly dir: string;
  readonly copies = false;
  readonly limits = false;

  constructor(dir: string) {
    this.dir = dir;
  }

  makeCommand(dir: string): readonly string[] {
    return ["mkdir", "-m", "755", dir];
  }

  async makeLayer(): Promise<void> {}

  contentOf(layer: string): string {
    return layer;
  }

  async limit(): Promise<void> {}

  use(dir: string): Promise<DiskUse | undefined> {
    return layerUse(dir);
  }

  remove(dir: string): Promise<void> {
    return removeTree(dir);
  }
}
