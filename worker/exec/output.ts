/** Turns a command's output into NDJSON lines for the client and a short preview for the log. */
import { StringDecoder } from "node:string_decoder";
import type { Stream } from "../../shared/stream/stream.ts";
import type { PipeReader } from "../runtime/process/pipes.ts";
import { JsonText, type Parts } from "./json-text.ts";

/** Bytes of each stream kept in the execution log. */
const previewBytesMax = 4 * 1024;

/** One of a command's two output streams, decoded without splitting characters. */
export class OutputStream {
  readonly #keepBytes: number;
  readonly #text: JsonText;
  readonly preview = new Preview();
  /** Bytes the command wrote. */
  bytes = 0;

  /** @param keepBytes bytes to pass on; any beyond are counted and dropped. */
  constructor(name: "stdout" | "stderr", keepBytes = Number.POSITIVE_INFINITY) {
    this.#text = new JsonText(name);
    this.#keepBytes = keepBytes;
  }

  get truncated(): boolean {
    return this.bytes > this.#keepBytes;
  }

  /** Whether what comes next goes anywhere: to the client, if it is still there, or into the log. */
  isWanted(isClientGone: boolean): boolean {
    return this.bytes < previewBytesMax || (!isClientGone && this.bytes < this.#keepBytes);
  }

  /** Counts bytes that go nowhere. */
  drop(bytes: number): void {
    this.bytes += bytes;
    this.preview.truncated = true;
  }

  /** The NDJSON line for a chunk, see `JsonText`; undefined when the chunk completes no character or lies beyond the limit. */
  take(chunk: Buffer): Parts | undefined {
    const kept = chunk.subarray(0, Math.max(0, this.#keepBytes - this.bytes));
    this.bytes += chunk.length;
    this.preview.add(chunk);
    return kept.length > 0 ? this.#text.take(kept) : undefined;
  }

  /** The line for trailing bytes that form no whole character. A character cut by our own limit does not count as broken. */
  flush(): Parts | undefined {
    return this.truncated ? undefined : this.#text.end();
  }
}

/** The beginning of a command's output. */
export class Preview {
  readonly #chunks: Buffer[] = [];
  #bytes = 0;

  /** Whether some output was left out. */
  truncated = false;

  add(chunk: Buffer): void {
    const part = chunk.subarray(0, previewBytesMax - this.#bytes);
    if (part.length < chunk.length) this.truncated = true;
    if (part.length === 0) return;
    this.#chunks.push(Buffer.from(part));
    this.#bytes += part.length;
  }

  get text(): string {
    return new StringDecoder("utf8").write(Buffer.concat(this.#chunks));
  }
}

/** Where the bytes of a source go. */
export interface Sink {
  /** Whether bytes that come next need to be looked at; else they are only counted. */
  isWanted(isClientGone: boolean): boolean;
  drop(bytes: number): void;
  /** The payload for a piece, to be sent at once; undefined for none. */
  take(piece: Buffer): Parts | undefined;
}

const asItIs: Sink = { isWanted: (isClientGone) => !isClientGone, drop: () => {}, take: (piece) => [piece] };

/**
 * Sends everything from a source, reading it only while there is room, and slowly what nobody gets, which is neither copied nor
 * decoded. If the stream breaks, the source is drained, so that its writer can end.
 */
export async function pump(stream: Stream, source: PipeReader, sink: Sink = asItIs): Promise<void> {
  for (;;) {
    if (!stream.signal.aborted) await stream.room().catch(() => {});
    if (!sink.isWanted(stream.signal.aborted)) {
      const bytes = await source.skip();
      if (bytes === undefined) return;
      sink.drop(bytes);
      await source.drop(bytes);
      continue;
    }
    const piece = await source.next(stream.roomBytes);
    if (!piece) return;
    const turn = stream.turn();
    if (turn) await turn;
    const payload = sink.take(piece);
    if (payload && !stream.signal.aborted) stream.push(...payload);
    else await source.drop(piece.length);
  }
}
