/** Plain folders, on any file system. */
import { mkdir } from "node:fs/promises";
import { removeTree } from "../filesystem/tree.ts";
import type { FileStorage } from "./storage.ts";

export class Folders implements FileStorage {
  readonly dir: string;
  readonly copies = false;

  constructor(dir: string) {
    this.dir = dir;
  }

  async make(dir: string): Promise<void> {
    await mkdir(dir, { mode: 0o755 });
  }

  copy(): Promise<void> {
    throw new Error("plain folders are not copied");
  }

  async makeLayer(): Promise<void> {}

  async finishLayer(): Promise<void> {}

  contentOf(layer: string): string {
    return layer;
  }

  async limit(): Promise<void> {}

  sharing(): undefined {}

  remove(dir: string): Promise<void> {
    return removeTree(dir);
  }
}
