/** When images were last used: the times of empty files beside Podman's storage, visible to all workers that share it. */
import { mkdir, readdir, rm, stat, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";

export class ImageUses {
  readonly #dir: string;

  constructor(storageDir: string) {
    this.#dir = join(storageDir, "image-uses");
  }

  async note(id: string): Promise<void> {
    await mkdir(this.#dir, { recursive: true, mode: 0o700 });
    const now = new Date();
    await utimes(this.#fileOf(id), now, now).catch(() => writeFile(this.#fileOf(id), ""));
  }

  /** Milliseconds since 1970, by image id. */
  async all(): Promise<ReadonlyMap<string, number>> {
    const ids = await readdir(this.#dir).catch(() => []);
    const times = await Promise.all(ids.map(async (id) => [id, (await stat(this.#fileOf(id)).catch(() => undefined))?.mtimeMs ?? 0] as const));
    return new Map(times);
  }

  async forget(id: string): Promise<void> {
    await rm(this.#fileOf(id), { force: true });
  }

  #fileOf(id: string): string {
    return join(this.#dir, id);
  }
}
