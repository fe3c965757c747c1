/** The folder that a backup is written to: under another name until it is complete, and for root alone. */
import { createHash, randomBytes } from "node:crypto";
import { type FileHandle, mkdir, open, rename, rm, statfs } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { StartFailure } from "../base/failure.ts";
import { trustedPath } from "../base/trusted-path.mjs";
import { type BackedUpFile, isFree, type Manifest, manifestFile } from "./manifest.ts";
import type { Owner } from "./owners.ts";

/** A file of a backup while it is written. */
export interface Entry {
  write(piece: Uint8Array): Promise<void>;
  /** Resolves when it is on disk. */
  end(): Promise<BackedUpFile>;
}

export class Target {
  readonly #dir: string;
  readonly #partial: string;
  readonly #signal: AbortSignal;
  readonly #files: BackedUpFile[] = [];
  readonly #open = new Set<FileHandle>();

  private constructor(dir: string, partial: string, signal: AbortSignal) {
    this.#dir = dir;
    this.#partial = partial;
    this.#signal = signal;
  }

  /**
   * @param bytes that will be needed at least
   * @throws {StartFailure} for a folder that is not empty or a disk without room; {UntrustedPath} where others could change what is written
   */
  static async make(dir: string, bytes: number, signal: AbortSignal): Promise<Target> {
    const parent = trustedPath(dirname(resolve(dir)), { make: 0o700 });
    const own = join(parent, basename(resolve(dir)));
    if (!(await isFree(own))) throw new StartFailure(`${own} is not empty: a backup gets a folder of its own`);
    const { bavail, bsize } = await statfs(parent);
    if (bavail * bsize < bytes) throw new StartFailure(`${parent} has ${bavail * bsize} bytes free, and the backup takes about ${bytes}`);
    const partial = `${own}.${randomBytes(4).toString("hex")}.partial`;
    await mkdir(partial, { mode: 0o700 });
    return new Target(own, partial, signal);
  }

  get bytes(): number {
    return this.#files.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  /** Begins a file. Folders above it are made. @param owner of the file that is backed up, where that matters */
  async begin(name: string, owner?: Owner): Promise<Entry> {
    const path = join(this.#partial, name);
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    const file = await open(path, "wx", 0o600);
    this.#open.add(file);
    const hash = createHash("sha256");
    let bytes = 0;
    return {
      write: async (piece) => {
        this.#signal.throwIfAborted();
        hash.update(piece);
        bytes += piece.length;
        await writeAll(file, piece);
      },
      end: async () => {
        await file.sync();
        this.#open.delete(file);
        await file.close();
        const written = { name, bytes, sha256: hash.digest("hex"), ...(owner ? { owner } : {}) };
        this.#files.push(written);
        return written;
      },
    };
  }

  async add(name: string, content: AsyncIterable<Uint8Array> | Iterable<Uint8Array>, owner?: Owner): Promise<void> {
    const entry = await this.begin(name, owner);
    for await (const piece of content) await entry.write(piece);
    await entry.end();
  }

  /** Gives the folder its name, once everything is in it. */
  async complete(rest: Omit<Manifest, "files">): Promise<{ dir: string; manifest: Manifest }> {
    this.#signal.throwIfAborted();
    const manifest = { ...rest, files: [...this.#files] };
    const file = await open(manifestFile(this.#partial), "wx", 0o600);
    await file.writeFile(`${JSON.stringify(manifest, undefined, 2)}\n`);
    await file.sync().finally(() => file.close());
    await rename(this.#partial, this.#dir);
    return { dir: this.#dir, manifest };
  }

  /** Removes what was written. */
  async discard(): Promise<void> {
    for (const file of this.#open) await file.close();
    await rm(this.#partial, { recursive: true, force: true });
  }
}

async function writeAll(file: FileHandle, piece: Uint8Array): Promise<void> {
  for (let written = 0; written < piece.length; ) written += (await file.write(piece, written)).bytesWritten;
}
