/**
 * Which range of ids belongs to which sandbox. Workers of one user share the ranges, so each is claimed by a link in a folder that
 * they have in common, to a file of the worker that has it. A claim whose file is gone is void.
 */
import { existsSync, mkdirSync, readlinkSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { attempt } from "../../../shared/util/attempt.ts";

export class Claims {
  readonly #shared: string;
  readonly #own: string;
  readonly #rangesMax: number;
  readonly #bySandbox = new Map<string, number>();

  /** @param shared a folder in memory of all workers @param own one of this worker, in which an earlier process may have left claims */
  constructor(shared: string, own: string, rangesMax: number) {
    this.#rangesMax = rangesMax;
    this.#shared = shared;
    this.#own = own;
    rmSync(own, { recursive: true, force: true });
    for (const dir of [shared, own]) mkdirSync(dir, { recursive: true, mode: 0o700 });
  }

  of(sandboxId: string): number | undefined {
    return this.#bySandbox.get(sandboxId);
  }

  /** The range of a sandbox, or one that nobody has; undefined if there is none. */
  take(sandboxId: string): number | undefined {
    const own = this.of(sandboxId);
    if (own !== undefined) return own;
    const held = new Set(this.#bySandbox.values());
    for (let range = 0; range < this.#rangesMax; range++) if (!held.has(range) && this.#claim(sandboxId, range)) return range;
    return undefined;
  }

  /** Claims the range that a sandbox had under an earlier process, whoever else has claimed it meanwhile. */
  retake(sandboxId: string, range: number): void {
    if (range >= this.#rangesMax) return;
    if (!this.#claim(sandboxId, range)) this.#bySandbox.set(sandboxId, range);
  }

  /** Hands the range of one on to another that has none. */
  pass(from: string, to: string): void {
    const range = this.of(from);
    if (range === undefined) return;
    const [link, next] = [this.#link(range), join(this.#own, `${to}.link`)];
    writeFileSync(this.#file(to), "");
    symlinkSync(this.#file(to), next);
    // In one step, so that no other worker finds it free.
    renameSync(next, link);
    this.#bySandbox.set(to, range);
    this.#bySandbox.delete(from);
    rmSync(this.#file(from), { force: true });
  }

  release(sandboxId: string): void {
    const range = this.of(sandboxId);
    if (range === undefined) return;
    this.#bySandbox.delete(sandboxId);
    const isOwn = attempt(() => readlinkSync(this.#link(range))) === this.#file(sandboxId);
    rmSync(this.#file(sandboxId), { force: true });
    if (isOwn) rmSync(this.#link(range), { force: true });
  }

  #claim(sandboxId: string, range: number): boolean {
    const link = this.#link(range);
    writeFileSync(this.#file(sandboxId), "");
    if (!existsSync(link)) rmSync(link, { force: true });
    try {
      symlinkSync(this.#file(sandboxId), link);
    } catch {
      return false;
    }
    this.#bySandbox.set(sandboxId, range);
    return true;
  }

  readonly #link = (range: number): string => join(this.#shared, String(range));
  readonly #file = (sandboxId: string): string => join(this.#own, sandboxId);
}
