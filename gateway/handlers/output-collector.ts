/** Keeps the output of a synchronous execution, within memory that all of them share. */
import type { Semaphore } from "../../shared/mutex.ts";

/** Output up to this size is held without asking for room. */
const freeBytes = 64 * 1024;

export class OutputCollector {
  readonly #memory: Semaphore;
  readonly #bytesMax: number;
  readonly #stdout: string[] = [];
  readonly #stderr: string[] = [];
  #bytes = 0;
  #release: (() => void) | undefined;

  /** @param bytesMax reserved whole once the output is not small, so that nobody who holds a part waits for more. */
  constructor(memory: Semaphore, bytesMax: number) {
    this.#memory = memory;
    this.#bytesMax = bytesMax;
  }

  get stdout(): string {
    return this.#stdout.join("");
  }

  get stderr(): string {
    return this.#stderr.join("");
  }

  /** Takes one or more NDJSON lines; waits while there is no room, which holds the command back. */
  async add(lines: Uint8Array): Promise<void> {
    this.#bytes += lines.length;
    if (this.#bytes > freeBytes) this.#release ??= await this.#memory.acquire(this.#bytesMax);
    for (const line of Buffer.from(lines.buffer, lines.byteOffset, lines.length).toString("utf8").split("\n")) {
      if (!line) continue;
      const chunk = JSON.parse(line) as { stdout?: string; stderr?: string };
      if (chunk.stdout) this.#stdout.push(chunk.stdout);
      if (chunk.stderr) this.#stderr.push(chunk.stderr);
    }
  }

  release(): void {
    this.#release?.();
  }
}
