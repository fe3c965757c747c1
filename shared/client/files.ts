/** Files in and out of a sandbox. */
import { untimed } from "./call-options.ts";
import type { CallOptions, Connection } from "./connection.ts";
import { SandgateError } from "./errors.ts";
import { bytesOf, counted, Download, type OnProgress, saveTo, type UploadSource } from "./transfer.ts";
import type { ByteStream } from "./transport.ts";
import type { UploadResult } from "./types.ts";

export interface UploadOptions extends CallOptions {
  /** Octal, such as `"755"`. */
  mode?: string | undefined;
  onProgress?: OnProgress | undefined;
}

export interface DownloadOptions extends CallOptions {
  /** A folder comes as a tar archive; without this it is an error. */
  archive?: "tar" | undefined;
  onProgress?: OnProgress | undefined;
}

/** A source that fails is not a server that gives no answer. */
async function* fromSource(source: ByteStream): AsyncGenerator<Uint8Array> {
  try {
    yield* source;
  } catch (cause) {
    if (cause instanceof SandgateError) throw cause;
    throw new SandgateError(`what was to be uploaded could not be read: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
  }
}

/** The files of one sandbox. */
export class Files {
  readonly #connection: Connection;
  readonly #path: string;

  /** @param path of the sandbox's calls */
  constructor(connection: Connection, path: string) {
    this.#connection = connection;
    this.#path = path;
  }

  upload(path: string, source: UploadSource, options: UploadOptions): Promise<UploadResult> {
    const { bytes, size } = bytesOf(source);
    return this.#send(path, bytes, size, options);
  }

  async uploadFile(localPath: string, path: string, options: UploadOptions): Promise<UploadResult> {
    const { bytes, size } = await this.#connection.settings.platform.readFile(localPath);
    return this.#send(path, bytes, size, options);
  }

  async download(path: string, { archive, onProgress, ...options }: DownloadOptions): Promise<Download> {
    const query = { path, archive };
    const { body, headers } = await this.#connection.open({ method: "GET", path: `${this.#path}/download`, query, repeatable: true, options });
    const length = headers.get("content-length");
    const size = length === null ? undefined : Number(length);
    return new Download(counted(body, size, onProgress), size);
  }

  async downloadFile(path: string, localPath: string, options: DownloadOptions): Promise<number> {
    const content = await this.download(path, options);
    return saveTo(() => this.#connection.settings.platform.writeFile(localPath), content);
  }

  #send(path: string, bytes: ByteStream, size: number | undefined, { mode, onProgress, ...options }: UploadOptions): Promise<UploadResult> {
    return this.#connection.json({
      method: "POST",
      path: `${this.#path}/upload`,
      query: { path, mode },
      bytes: counted(fromSource(bytes), size, onProgress),
      headers: size === undefined ? {} : { "content-length": String(size) },
      repeatable: false,
      options,
      timeoutMs: untimed,
    });
  }
}
