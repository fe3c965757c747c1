/** Collects the output of a synchronous execution, within a memory budget that all executions share. */
import type { Semaphore } from "../../shared/util/mutex.ts";

/** Output up to this size needs no reservation. */
const freeBytes = 64 * 1024;

type Stream = "stdout" | "stderr";

export class OutputCollector {
  readonly #memory: Semaphore;
  readonly #bytesMax: number;
  /** Raw bytes, because JSON or strings may take many times the memory. */
  readonly #chunks: Readonly<Record<Stream, Buffer[]>> = { stdout: [], stderr: [] };
  readonly #jsonBytes: Record<Stream, number> = { stdout: 0, stderr: 0 };
  #bytes = 0;
  #release: (() => void) | undefined;

  /** @param bytesMax reserved in full once the output exceeds `freeBytes`, so that no holder of a part ever waits for more. */
  constructor(memory: Semaphore, bytesMax: number) {
    this.#memory = memory;
    this.#bytesMax = bytesMax;
  }

  /** The number of bytes that `json` yields. */
  jsonBytes(stream: Stream): number {
    return this.#jsonBytes[stream];
  }

  /** The content of a JSON string with one of the streams, piece by piece. */
  *json(stream: Stream): Generator<string> {
    // The worker never splits a character, so pieces can be decoded separately.
    for (const chunk of this.#chunks[stream]) yield escaped(chunk.toString("utf8"));
  }

  /** Adds one or more NDJSON lines. Waits while there is no room, which slows the command down. */
  async add(lines: Uint8Array): Promise<void> {
    this.#bytes += lines.length;
    if (this.#bytes > freeBytes) this.#release ??= await this.#memory.acquire(this.#bytesMax);
    for (const line of Buffer.from(lines.buffer, lines.byteOffset, lines.length).toString("utf8").split("\n")) {
      if (!line) continue;
      const { stdout, stderr } = JSON.parse(line) as Partial<Record<Stream, string>>;
      if (stdout) this.#keep("stdout", stdout);
      if (stderr) this.#keep("stderr", stderr);
    }
  }

  release(): void {
    this.#release?.();
  }

  #keep(stream: Stream, text: string): void {
    this.#chunks[stream].push(Buffer.from(text));
    this.#jsonBytes[stream] += Buffer.byteLength(escaped(text));
  }
}

const escaped = (text: string): string => JSON.stringify(text).slice(1, -1);
