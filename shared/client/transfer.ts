/** File transfers: accepted sources, received files, and progress. */
import type { LocalFile } from "./platform.ts";
import type { ByteStream } from "./transport.ts";
import { readable } from "./transport-fetch.ts";

/**
 * The sources of uploads. A string is the file's text; a Node stream is an async iterable. A function returns the same bytes
 * each time, so that a refused upload can be sent again.
 */
export type UploadSource =
  | string
  | Uint8Array
  | ArrayBuffer
  | Blob
  | ReadableStream<Uint8Array>
  | AsyncIterable<Uint8Array | string>
  | (() => AsyncIterable<Uint8Array | string>);

/** The bytes to send, and their number if known. */
export interface Content {
  readonly bytes: ByteStream | (() => ByteStream);
  readonly size: number | undefined;
}

/** Called as bytes are transferred; the total is undefined if it is not known in advance. */
export type OnProgress = (doneBytes: number, totalBytes: number | undefined) => void;

/** Large pieces are sent in parts of this size, so that progress is visible. */
const pieceBytes = 64 * 1024;

export function contentOf(source: UploadSource): Content {
  if (typeof source === "string") return whole(new TextEncoder().encode(source));
  if (source instanceof Uint8Array) return whole(source);
  if (source instanceof ArrayBuffer) return whole(new Uint8Array(source));
  if (source instanceof Blob) return { bytes: () => piecesOf(source.stream()), size: source.size };
  if (typeof source === "function") return { bytes: () => piecesOf(source()), size: undefined };
  return { bytes: piecesOf(source), size: undefined };
}

function whole(bytes: Uint8Array): Content {
  return { bytes: () => piecesOf([bytes]), size: bytes.length };
}

async function* piecesOf(source: Uint8Array[] | ReadableStream<Uint8Array> | AsyncIterable<Uint8Array | string>): AsyncGenerator<Uint8Array> {
  const encoder = new TextEncoder();
  const pieces = "getReader" in source ? read(source) : source;
  for await (const piece of pieces) {
    const bytes = typeof piece === "string" ? encoder.encode(piece) : piece;
    for (let at = 0; at < bytes.length; at += pieceBytes) yield bytes.subarray(at, at + pieceBytes);
  }
}

/** Uses a reader, because some browsers lack the stream's async iterator. */
async function* read(stream: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = stream.getReader();
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) yield next.value;
  } finally {
    await reader.cancel().catch(() => {});
  }
}

/** Passes the bytes through and reports progress. */
export async function* counted(bytes: ByteStream, totalBytes: number | undefined, onProgress: OnProgress | undefined): AsyncGenerator<Uint8Array> {
  let done = 0;
  onProgress?.(0, totalBytes);
  for await (const piece of bytes) {
    yield piece;
    done += piece.length;
    onProgress?.(done, totalBytes);
  }
}

export function joined(pieces: readonly Uint8Array[]): Uint8Array {
  const [only, ...more] = pieces;
  if (only && more.length === 0) return only;
  const all = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const piece of pieces) {
    all.set(piece, at);
    at += piece.length;
  }
  return all;
}

/** A file being downloaded. It can be read once, in one of these ways; no more is fetched than is read. */
export class Download implements AsyncIterable<Uint8Array> {
  /** Size in bytes; undefined for an archive. */
  readonly size: number | undefined;
  readonly #bytes: ByteStream;

  constructor(bytes: ByteStream, size: number | undefined) {
    this.#bytes = bytes;
    this.size = size;
  }

  [Symbol.asyncIterator](): AsyncIterator<Uint8Array> {
    return this.#bytes[Symbol.asyncIterator]();
  }

  /** The content as a web stream. */
  stream(): ReadableStream<Uint8Array> {
    return readable(this.#bytes);
  }

  /** The whole content, in memory. */
  async bytes(): Promise<Uint8Array> {
    const pieces: Uint8Array[] = [];
    for await (const piece of this.#bytes) pieces.push(piece);
    return joined(pieces);
  }

  /** The whole content as UTF-8 text. */
  async text(): Promise<string> {
    return new TextDecoder().decode(await this.bytes());
  }
}

/** Writes all bytes to a local file, or leaves an existing one unchanged on failure. Returns the number of bytes. */
export async function saveTo(open: () => Promise<LocalFile>, bytes: ByteStream): Promise<number> {
  let size = 0;
  let file: LocalFile | undefined;
  try {
    for await (const piece of bytes) {
      file ??= await open();
      await file.write(piece);
      size += piece.length;
    }
    file ??= await open();
    await file.keep();
    return size;
  } catch (error) {
    await file?.drop();
    throw error;
  }
}
