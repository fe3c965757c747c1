/** File transfer into and out of a sandbox. */
import { type CallOptions, untimed } from "./call-options.ts";
import type { Connection, Query } from "./connection.ts";
import { SandgateError } from "./errors.ts";
import { type Content, contentOf, counted, Download, type OnProgress, saveTo, type UploadSource } from "./transfer.ts";
import type { ByteStream } from "./transport.ts";
import type { ArchiveResult, FileInfo, UploadResult } from "./types.ts";

export interface ArchiveOptions extends CallOptions {
  onProgress?: OnProgress | undefined;
}

export interface UploadOptions extends ArchiveOptions {
  /** The mode in octal, such as `"755"`. */
  mode?: string | undefined;
}

export interface DownloadOptions extends CallOptions {
  /** Downloads a folder as a tar archive; without this, a folder is an error. */
  archive?: "tar" | undefined;
  onProgress?: OnProgress | undefined;
}

/** Reports failures of the source as such, not as a missing answer of the server. */
async function* fromSource(source: ByteStream): AsyncGenerator<Uint8Array> {
  try {
    yield* source;
  } catch (cause) {
    if (cause instanceof SandgateError) throw cause;
    throw new SandgateError(`the content to upload could not be read: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
  }
}

/** The files of one sandbox. */
export class SandboxFiles {
  readonly id: string;
  protected readonly connection: Connection;
  /** Of the sandbox's calls. */
  protected readonly path: string;

  constructor(connection: Connection, id: string) {
    this.connection = connection;
    this.id = id;
    this.path = `/v1/sandboxes/${encodeURIComponent(id)}`;
  }

  /** Writes a whole file, or leaves the old one unchanged on failure. Creates missing folders. @param path absolute, in the sandbox */
  upload(path: string, source: UploadSource, options: UploadOptions = {}): Promise<UploadResult> {
    return this.#send({ path, mode: options.mode }, contentOf(source), options);
  }

  /** Uploads a local file. Not in browsers. */
  async uploadFile(localPath: string, path: string, options: UploadOptions = {}): Promise<UploadResult> {
    const { readFile } = this.connection.settings.platform;
    const { size } = await readFile(localPath);
    async function* bytes(): AsyncGenerator<Uint8Array> {
      yield* (await readFile(localPath)).bytes;
    }
    return this.#send({ path, mode: options.mode }, { bytes, size }, options);
  }

  /** Unpacks a tar archive, compressed or not, in a folder, which is created if missing. @param path absolute, in the sandbox */
  uploadArchive(path: string, source: UploadSource, options: ArchiveOptions = {}): Promise<ArchiveResult> {
    return this.#send({ path, archive: "tar" }, contentOf(source), options);
  }

  /** The file or folder at a path; links are followed. @throws {NotFoundError} if there is none */
  stat(path: string, options: CallOptions = {}): Promise<FileInfo> {
    return this.connection.get(`${this.path}/stat`, options, { path });
  }

  /** Downloads a file, or a folder with `archive: "tar"`. */
  async download(path: string, { archive, onProgress, ...options }: DownloadOptions = {}): Promise<Download> {
    const query = { path, archive };
    const { body, headers } = await this.connection.open({ method: "GET", path: `${this.path}/download`, query, repeatable: true, options });
    const length = headers.get("content-length");
    const size = length === null ? undefined : Number(length);
    return new Download(counted(body, size, onProgress), size);
  }

  /** Downloads to a local file, which is replaced once the download is complete. Returns its size. Not in browsers. */
  async downloadFile(path: string, localPath: string, options: DownloadOptions = {}): Promise<number> {
    const content = await this.download(path, options);
    return saveTo(() => this.connection.settings.platform.writeFile(localPath), content);
  }

  #send<T>(query: Query, { bytes, size }: Content, { onProgress, ...options }: ArchiveOptions): Promise<T> {
    const { signal, timeoutMs, maxRetries } = options;
    const sent = (stream: ByteStream): ByteStream => counted(fromSource(stream), size, onProgress);
    return this.connection.json({
      method: "POST",
      path: `${this.path}/upload`,
      query,
      bytes: typeof bytes === "function" ? () => sent(bytes()) : sent(bytes),
      headers: size === undefined ? {} : { "content-length": String(size) },
      repeatable: false,
      options: { signal, timeoutMs, maxRetries },
      timeoutMs: untimed,
    });
  }
}
