/** Uploads of files and folders. A folder is sent as one archive and unpacked in the sandbox, which keeps modes and links. */
import { createReadStream } from "node:fs";
import { lstat, readdir, readlink, stat } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { type Pack, pack } from "tar-stream";
import type { SandboxHandle } from "../../client/sandbox.ts";
import type { OnProgress } from "../../client/transfer.ts";
import { CliError } from "../failures.ts";
import { say } from "../output.ts";

export interface Copied {
  readonly files: number;
  /** Total size of the files in bytes. */
  readonly bytes: number;
  /** Number of entries that could not be copied, which have been reported. */
  readonly skipped: number;
}

export async function uploadFile(sandbox: SandboxHandle, local: string, path: string, onProgress: OnProgress): Promise<Copied> {
  const { mode } = await stat(local);
  const { size } = await sandbox.uploadFile(local, path, { mode: (mode & 0o777).toString(8).padStart(3, "0"), onProgress });
  return { files: 1, bytes: size, skipped: 0 };
}

/** @param path the folder in the sandbox, which is created if missing */
export async function uploadFolder(sandbox: SandboxHandle, local: string, path: string, onProgress: OnProgress): Promise<Copied> {
  const entries = await walk(local);
  const totalBytes = entries.reduce((sum, { size }) => sum + size, 0);
  let done = { files: 0, bytes: 0, skipped: 0 };
  const archive = (): AsyncIterable<Uint8Array> => {
    const stream = pack();
    const now = { files: 0, bytes: 0, skipped: 0 };
    done = now;
    // An error ends the archive and thereby the upload.
    void fill(stream, local, entries, (change) => {
      now[change.what] += change.by;
      onProgress(now.bytes, totalBytes);
    }).catch((error: Error) => stream.destroy(error));
    return stream as AsyncIterable<Uint8Array>;
  };
  await sandbox.uploadArchive(path, archive);
  return done;
}

/** @param archive tar, plain or in a compression that the sandbox's `tar` knows. @param path an existing folder */
export async function uploadArchive(sandbox: SandboxHandle, archive: AsyncIterable<Uint8Array>, path: string, onProgress: OnProgress): Promise<Copied> {
  const source = new Again(archive);
  const { files, size } = await sandbox.uploadArchive(path, () => source.read(), { onProgress });
  return { files, bytes: size, skipped: 0 };
}

interface Entry {
  /** Relative to the folder, with slashes. */
  readonly name: string;
  readonly kind: "file" | "folder" | "link" | "other";
  readonly size: number;
  readonly mode: number;
  readonly mtime: Date;
}

async function walk(root: string, below = ""): Promise<Entry[]> {
  const names = (await readdir(join(root, below))).sort();
  const found: Entry[] = [];
  for (const name of names) {
    const path = below ? `${below}/${name}` : name;
    const info = await lstat(join(root, path));
    const kind = info.isFile() ? "file" : info.isDirectory() ? "folder" : info.isSymbolicLink() ? "link" : "other";
    found.push({ name: path, kind, size: kind === "file" ? info.size : 0, mode: info.mode & 0o7777, mtime: info.mtime });
    if (kind === "folder") found.push(...(await walk(root, path)));
  }
  return found;
}

type Report = (change: { what: "files" | "bytes" | "skipped"; by: number }) => void;

async function fill(stream: Pack, root: string, entries: readonly Entry[], report: Report): Promise<void> {
  for (const { name, kind, size, mode, mtime } of entries) {
    const header = { name, mode, mtime, uid: 0, gid: 0 };
    if (kind === "folder") stream.entry({ ...header, type: "directory" });
    else if (kind === "link") stream.entry({ ...header, type: "symlink", linkname: await readlink(join(root, name)) });
    else if (kind === "file") await addFile(stream, join(root, name), { ...header, size }, report);
    else {
      say(`sandgate: ${join(root, name)} is neither a file, a folder nor a link; it is left out`);
      report({ what: "skipped", by: 1 });
      continue;
    }
    report({ what: "files", by: 1 });
  }
  stream.finalize();
}

async function addFile(stream: Pack, path: string, header: { name: string; size: number }, report: Report): Promise<void> {
  const entry = stream.entry(header);
  if (header.size === 0) return void entry.end(new Uint8Array());
  // Bytes appended meanwhile are ignored; a file that becomes shorter breaks the archive, which is reported.
  const content = createReadStream(path, { end: header.size - 1 });
  content.on("data", ({ length }) => report({ what: "bytes", by: length }));
  await pipeline(content, entry);
}

/** How much may have been sent to a distant server before its refusal arrives. */
const keptBytesMax = 16 * 1024 * 1024;

const tooLate = (): CliError => new CliError("the server refuses more calls for now, and too much of standard input has been read to restart; try again");

/** Standard input that can be sent twice, for a call that the server may refuse before it has read everything. */
export class Again {
  readonly #source: AsyncIterator<Uint8Array>;
  /** The pieces read so far; those no longer needed are undefined. */
  readonly #pieces: (Uint8Array | undefined)[] = [];
  #keptBytes = 0;
  #isKept = true;
  #isOver = false;
  #reading: Promise<void> | undefined;

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  /** All bytes from the start. @throws {CliError} if too many have been read meanwhile */
  async *read(): AsyncGenerator<Uint8Array> {
    if (!this.#isKept) throw tooLate();
    for (let at = 0; ; at++) {
      while (at >= this.#pieces.length && !this.#isOver) await this.#more();
      const piece = this.#pieces[at];
      if (piece === undefined && at < this.#pieces.length) throw tooLate();
      if (piece === undefined) return;
      if (!this.#isKept) this.#pieces[at] = undefined;
      yield piece;
    }
  }

  /** Reads one piece, shared by all readers: an abandoned reader may have requested it. */
  #more(): Promise<void> {
    this.#reading ??= this.#source
      .next()
      .then((next) => this.#take(next))
      .finally(() => {
        this.#reading = undefined;
      });
    return this.#reading;
  }

  #take({ done, value }: IteratorResult<Uint8Array>): void {
    if (done) {
      this.#isOver = true;
      return;
    }
    this.#pieces.push(value);
    this.#keptBytes += value.length;
    if (this.#isKept && this.#keptBytes > keptBytesMax) {
      this.#isKept = false;
      this.#pieces.fill(undefined, 0, -1);
    }
  }
}
