/**
 * Disk space kept back so that deletions work on a full disk: records, and Podman's own lists, are rewritten before anything
 * is freed. Kept as several files, because inodes may be what is short.
 */
import { randomBytes } from "node:crypto";
import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { SandgateError } from "../../../shared/errors.ts";
import type { Logger } from "../../../shared/util/log.ts";

const folder = "reserve";
const fileCount = 16;
const fileBytes = 256 * 1024;

export class Reserve {
  readonly #dirs: readonly string[];
  readonly #log: Logger;

  /** @param dirs folders on the file systems that matter. */
  constructor(dirs: readonly string[], log: Logger) {
    this.#dirs = dirs.map((dir) => join(dir, folder));
    this.#log = log;
  }

  /** Creates the missing files, as far as there is room. */
  async fill(): Promise<void> {
    for (const dir of this.#dirs) await this.#fill(dir).catch((err) => this.#log.debug({ err, dir }, "there is no room for the disk reserve now"));
  }

  /** Runs a deletion. If the disk is full, gives up the reserve and runs it once more. */
  async spend(deletion: () => Promise<void>): Promise<void> {
    try {
      await deletion();
    } catch (error) {
      if (SandgateError.from(error).code !== "insufficient_storage") throw error;
      this.#log.warn({ event: "reserve_spent", err: error }, "the disk is full: the space reserved for deletions is released for one");
      for (const dir of this.#dirs) await rm(dir, { recursive: true, force: true });
      await deletion();
    }
  }

  async #fill(dir: string): Promise<void> {
    await mkdir(dir, { recursive: true, mode: 0o700 });
    const there = new Set(await readdir(dir));
    const missing = Array.from({ length: fileCount }, (_, index) => String(index)).filter((name) => !there.has(name));
    // Random, so that no file system can compress it.
    for (const name of missing) await writeFile(join(dir, name), randomBytes(fileBytes), { flush: true });
  }
}
