/** Keeps the output of a synchronous execution, within memory that all of them share. */
import type { Semaphore } from "../../shared/util/mutex.ts";

/** Output up to this size is held without asking for room. */
const freeBytes = 64 * 1024;

type Stream = "stdout" | "stderr";

export class OutputCollector {
  readonly #memory: Semaphore;
  readonly #bytesMax: number;
  /** As the command has written it: as JSON, or as a string, it may take many times the memory. */
  readonly #chunks: Readonly<Record<Stream, Buffer[]>> = { stdout: [], stderr: [] };
  readonly #jsonBytes: Record<Stream, number> = { stdout: 0, stderr: 0 };
  #bytes = 0;
  #release: (() => void) | undefined;

  /** @param bytesMax reserved whole once the output is not small, so that nobody who holds a part waits for more. */
  constructor(memory: Semaphore, bytesMax: number) {
    this.#memory = memory;
    this.#bytesMax = bytesMax;
  }

  /** Bytes of what `json` yields. */
  jsonBytes(stream: Stream): number {
    return this.#jsonBytes[stream];
  }

  /** One of the streams as the inside of a JSON string, piece by piece. */
  *json(stream: Stream): Generator<string> {
    // No character is cut in two by the worker, so the pieces are as good as the whole.
    for (const chunk of this.#chunks[stream]) yield escaped(chunk.toString("utf8"));
  }

  /** Takes one or more NDJSON lines; waits while there is no room, which holds the command back. */
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
