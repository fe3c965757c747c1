/** What becomes of a command's output: NDJSON lines for the client, a short preview for the log. */
import { StringDecoder } from "node:string_decoder";

/** Bytes of each stream that the execution log keeps. */
const previewBytesMax = 4 * 1024;

export type StreamName = "stdout" | "stderr";

/** One of a command's two streams, decoded without cutting a character in two. */
export class OutputStream {
  readonly #name: StreamName;
  readonly #keepBytes: number;
  readonly #decoder = new StringDecoder("utf8");
  readonly #preview = new Preview();
  /** Bytes the command wrote. */
  bytes = 0;

  /** @param keepBytes bytes that are passed on; what comes after is counted and dropped. */
  constructor(name: StreamName, keepBytes: number) {
    this.#name = name;
    this.#keepBytes = keepBytes;
  }

  get truncated(): boolean {
    return this.bytes > this.#keepBytes;
  }

  get preview(): string {
    return this.#preview.text;
  }

  get previewTruncated(): boolean {
    return this.bytes > previewBytesMax;
  }

  /** The NDJSON line for a chunk, or undefined when it holds no whole character or is beyond what is kept. */
  take(chunk: Buffer): Buffer | undefined {
    const kept = chunk.subarray(0, Math.max(0, this.#keepBytes - this.bytes));
    this.bytes += chunk.length;
    this.#preview.add(kept);
    return kept.length > 0 ? this.#line(this.#decoder.write(kept)) : undefined;
  }

  /** The line for bytes at the end that make no whole character. What was cut off by us is no broken character. */
  flush(): Buffer | undefined {
    return this.truncated ? undefined : this.#line(this.#decoder.end());
  }

  #line(text: string): Buffer | undefined {
    return text ? Buffer.from(`${JSON.stringify({ [this.#name]: text })}\n`) : undefined;
  }
}

/** The beginning of what a command wrote. */
export class Preview {
  readonly #chunks: Buffer[] = [];
  #bytes = 0;

  /** Whether something was left out. */
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
