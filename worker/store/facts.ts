/**
 * A second copy, in one file per sandbox, of the facts that only the worker's own records hold: environment variables, and
 * what a restored sandbox was made from, or is to start with. Everything else can be recovered from the directory.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { attempt } from "../../shared/util/attempt.ts";
import type { SandboxRecord } from "./records.ts";

export type SandboxFacts = Pick<SandboxRecord, "env_vars" | "root" | "memory_from">;

export class Facts {
  readonly #dir: string;
  /** The facts as they are on disk. */
  readonly #written = new Map<string, string>();

  constructor(dir: string) {
    this.#dir = dir;
  }

  /** Resolves when the facts are on disk. Most sandboxes have none and need no file. */
  async put({ id, env_vars, root, memory_from }: SandboxRecord): Promise<void> {
    if (!root && Object.keys(env_vars).length === 0) return;
    const text = JSON.stringify({ env_vars, ...(root ? { root } : {}), ...(memory_from ? { memory_from } : {}) } satisfies SandboxFacts);
    if (this.#written.get(id) === text) return;
    mkdirSync(this.#dir, { recursive: true, mode: 0o700 });
    const partial = `${this.#fileOf(id)}.partial`;
    try {
      await writeFile(partial, text, { mode: 0o600, flush: true });
      renameSync(partial, this.#fileOf(id));
    } catch (error) {
      rmSync(partial, { force: true });
      throw error;
    }
    this.#written.set(id, text);
  }

  /** Whether there are any of a sandbox. */
  has(id: string): boolean {
    return existsSync(this.#fileOf(id));
  }

  /** Undefined where the file is damaged; without a file there are none. */
  of(id: string): SandboxFacts | undefined {
    const text = attempt(() => readFileSync(this.#fileOf(id), "utf8"));
    return text === undefined ? { env_vars: {} } : attempt(() => JSON.parse(text) as SandboxFacts);
  }

  remove(id: string): void {
    this.#written.delete(id);
    rmSync(this.#fileOf(id), { force: true });
  }

  /** Removes the files of all but these sandboxes, which a worker that was killed has left. */
  retain(ids: Iterable<string>): void {
    const kept = new Set([...ids].map((id) => this.#fileOf(id)));
    const files = (attempt(() => readdirSync(this.#dir)) ?? []).map((name) => join(this.#dir, name));
    for (const file of files) if (!kept.has(file)) rmSync(file, { force: true });
  }

  #fileOf(id: string): string {
    return join(this.#dir, `${id}.json`);
  }
}
