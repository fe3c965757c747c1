/** Turns a command's output into NDJSON lines for the client and a short preview for the log. */
import { StringDecoder } from "node:string_decoder";
import type { Stream } from "../../shared/stream/stream.ts";
import type { PipeReader } from "../runtime/process/pipes.ts";

/** Bytes of each stream kept in the execution log. */
const previewBytesMax = 4 * 1024;

/** One of a command's two output streams, decoded without splitting characters. */
export class OutputStream {
  readonly #name: "stdout" | "stderr";
  readonly #keepBytes: number;
  readonly #decoder = new StringDecoder("utf8");
  readonly preview = new Preview();
  /** Bytes the command wrote. */
  bytes = 0;

  /** @param keepBytes bytes to pass on; any beyond are counted and dropped. */
  constructor(name: "stdout" | "stderr", keepBytes = Number.POSITIVE_INFINITY) {
    this.#name = name;
    this.#keepBytes = keepBytes;
  }

  get truncated(): boolean {
    return this.bytes > this.#keepBytes;
  }

  /** The NDJSON line for a chunk, or undefined when the chunk completes no character or lies beyond the limit. */
  take(chunk: Buffer): Buffer | undefined {
    const kept = chunk.subarray(0, Math.max(0, this.#keepBytes - this.bytes));
    this.bytes += chunk.length;
    this.preview.add(chunk);
    return kept.length > 0 ? this.#line(this.#decoder.write(kept)) : undefined;
  }

  /** The line for trailing bytes that form no whole character. A character cut by our own limit does not count as broken. */
  flush(): Buffer | undefined {
    return this.truncated ? undefined : this.#line(this.#decoder.end());
  }

  #line(text: string): Buffer | undefined {
    return text ? Buffer.from(`${JSON.stringify({ [this.#name]: text })}\n`) : undefined;
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

/**
 * Sends everything from a source, reading it only while there is room, and slowly what nobody gets. If the stream breaks, the
 * source is drained, so that its writer can end.
 *
 * @param convert makes the payload for a piece; undefined to drop it
 */
export async function pump(stream: Stream, source: PipeReader, convert = (piece: Buffer): Buffer | undefined => piece): Promise<void> {
  for (;;) {
    if (!stream.signal.aborted) await stream.room().catch(() => {});
    const piece = await source.next();
    if (!piece) return;
    const bytes = convert(piece);
    const turn = bytes && stream.turn();
    if (turn) await turn;
    if (bytes && !stream.signal.aborted) stream.push(bytes);
    else await source.drop(piece.length);
  }
}
