/**
 * Ranges of ids: each sandbox has 65,536 of its own, so that what the kernel counts by user, such as keys, watches and signals,
 * counts for one sandbox only, and who escapes from it is nobody. Files keep the ids of Podman's namespace on disk, whatever range
 * a sandbox has; they are shown with those of the range by mounts that only the privileged helper can make.
 */
import { chownSync, closeSync, constants, existsSync, mkdirSync, openSync, readdirSync, readFileSync, readlinkSync, rmdirSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { idsPerSandbox } from "../../../shared/privileged.ts";
import { attempt } from "../../../shared/util/attempt.ts";
import { isEmptyRoot } from "../filesystem/empty.ts";
import { detachMount } from "../filesystem/mounting.ts";
import type { PrivilegedHelper } from "../privileged/helper.ts";
import type { Claims } from "./claims.ts";

/** The first id of a range, in Podman's namespace: before it are its root, and the ids that sandboxes without a range share. */
export const firstIdOf = (range: number): number => 1 + idsPerSandbox * (range + 1);

/** Whose ids a process has: 0 in Podman's own namespace, else the id that its root has there. */
export function rootIdOf(pid: number): number {
  // A process in our own namespace is shown with the ids of the host.
  if (namespaceOf(pid) === namespaceOf("self")) return 0;
  const [, first] = (attempt(() => readFileSync(`/proc/${pid}/uid_map`, "utf8")) ?? "").trim().split(/\s+/);
  return Number(first ?? 0);
}

const namespaceOf = (pid: number | "self"): string | undefined => attempt(() => readlinkSync(`/proc/${pid}/ns/user`));

/** Folders that the root file systems of sandboxes are made of. */
export interface Trees {
  /** Where they are shown once more for the helper: a folder on the volume. */
  readonly dir: string;
  /** The worker's folder on the volume, and Podman's layers of images. */
  readonly shown: Readonly<Record<"volume" | "images", string>>;
}

/** Where a sandbox's root is mounted for its container. */
export const rootOnStage = (stage: string, sandboxId: string): string => join(stage, sandboxId, "root");

/** Where a strong sandbox's runtime puts copies of Podman's files for it, beside its root. */
export const copiesBeside = (root: string): string => join(dirname(root), "copies");

interface Parts {
  readonly helper: PrivilegedHelper;
  readonly trees: Trees;
  /** A folder of this worker that ids of every range may pass, for mounts only. */
  readonly stage: string;
  readonly claims: Claims;
}

export class IdRanges {
  readonly #parts: Parts;
  /** A range whose folders are shown already, for the next new sandbox: to show them takes a program. */
  #spare: string | undefined;
  /** The names under which the folders of sandboxes are shown, where those are not their own. */
  readonly #spares = new Map<string, string>();
  #serial = 0;
  #isPreparing = false;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  get claims(): Claims {
    return this.#parts.claims;
  }

  /** Where a sandbox's root is mounted for its container. */
  stageOf(sandboxId: string): string {
    return rootOnStage(this.#parts.stage, sandboxId);
  }

  /** Makes the folder at which a sandbox's root will be mounted for its container. */
  makeStage(sandboxId: string, range: number): string {
    this.#give(sandboxId, range);
    mkdirSync(this.stageOf(sandboxId), { recursive: true });
    return this.stageOf(sandboxId);
  }

  /** Whether a folder is among those that can be shown. */
  canShow(dir: string): boolean {
    return this.#treeOf(dir) !== undefined;
  }

  /** The range of a sandbox, or one that nobody has; undefined if there is none. */
  take(sandboxId: string): number | undefined {
    const { claims } = this.#parts;
    if (claims.of(sandboxId) === undefined && this.#spare !== undefined) {
      claims.pass(this.#spare, sandboxId);
      this.#spares.set(sandboxId, this.#spare);
      this.#spare = undefined;
    }
    return claims.take(sandboxId);
  }

  /**
   * Shows all folders with the ids of a sandbox's range while `use` runs.
   *
   * @param use gets what a folder is called meanwhile
   * @throws {SandgateError} `unavailable`, `internal_error`
   */
  async show<T>(sandboxId: string, range: number, use: (place: (dir: string) => string) => Promise<T>): Promise<T> {
    const name = this.#spares.get(sandboxId) ?? sandboxId;
    this.#spares.delete(sandboxId);
    const target = this.#shownOf(name);
    this.#give(sandboxId, range);
    try {
      if (name === sandboxId) await this.#show(name, range);
      return await use((dir) => join(target, this.#treeOf(dir) ?? ""));
    } finally {
      await (name === sandboxId ? this.hide(name) : this.#hideSpare(name));
    }
  }

  /** Gives back the range of a sandbox that is gone. */
  async release(sandboxId: string): Promise<void> {
    const shown = this.#spares.get(sandboxId);
    this.#spares.delete(sandboxId);
    if (shown !== undefined) await this.#hideSpare(shown);
    this.claims.release(sandboxId);
  }

  /** Prepares for the next new sandbox, for which it takes longer otherwise. */
  async prepare(): Promise<void> {
    const { claims } = this.#parts;
    if (this.#spare !== undefined || this.#isPreparing) return;
    const name = `next-${this.#serial++}`;
    const range = claims.take(name);
    if (range === undefined) return;
    this.#isPreparing = true;
    try {
      this.#give(name, range);
      await this.#show(name, range);
      this.#spare = name;
    } catch (error) {
      claims.release(name);
      await this.hide(name);
      throw error;
    } finally {
      this.#isPreparing = false;
    }
  }

  /** Makes the folder of a sandbox, which nobody else passes, not even who has escaped from another sandbox. */
  #give(name: string, range: number): void {
    mkdirSync(this.#folderOf(name), { recursive: true, mode: 0o700 });
    chownSync(this.#folderOf(name), firstIdOf(range), firstIdOf(range));
  }

  async #show(name: string, range: number): Promise<void> {
    const { helper, trees } = this.#parts;
    const target = this.#shownOf(name);
    await this.hide(name);
    mkdirSync(target, { mode: 0o700 });
    const [from, to] = [trees.dir, target].map((dir) => openSync(dir, constants.O_RDONLY | constants.O_DIRECTORY)) as [number, number];
    try {
      await helper.mapIds(range, from, to);
    } finally {
      for (const fd of [from, to]) closeSync(fd);
    }
  }

  async #hideSpare(name: string): Promise<void> {
    await this.hide(name);
    rmdirSync(this.#folderOf(name));
  }

  /** Ends that, also for an earlier process. Mounts over these folders go on. */
  async hide(sandboxId: string): Promise<void> {
    const target = this.#shownOf(sandboxId);
    if (!existsSync(target)) return;
    while (await detachMount(target));
    rmdirSync(target);
  }

  /** Ends it for all sandboxes, after an earlier process was killed. */
  async hideAll(): Promise<void> {
    for (const name of readdirSync(this.#parts.stage)) {
      await this.hide(name);
      if (isEmptyRoot(this.stageOf(name))) await detachMount(this.stageOf(name));
      // What nothing was mounted at yet. A root with files stays.
      for (const dir of [this.stageOf(name), this.#folderOf(name)]) attempt(() => rmdirSync(dir));
    }
  }

  #shownOf(sandboxId: string): string {
    return join(this.#folderOf(sandboxId), "files");
  }

  #folderOf(sandboxId: string): string {
    return join(this.#parts.stage, sandboxId);
  }

  /** The folder as it is called below the shown ones. */
  #treeOf(dir: string): string | undefined {
    const found = Object.entries(this.#parts.trees.shown).find(([, tree]) => dir.startsWith(`${tree}/`));
    return found && join(found[0], relative(found[1], dir));
  }
}
