/**
 * Subvolumes of a btrfs volume, one for each sandbox and each layer. They are made and removed with the worker's own rights; only
 * their limits need those of root. The kernel counts for each one what it refers to, which many may share.
 */
import { existsSync, readFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { SandgateError } from "../../../shared/errors.ts";
import { type DiskUse, layerUse } from "../filesystem/disk.ts";
import type { PrivilegedHelper } from "../privileged/helper.ts";
import { copySubvolume, makeSubvolume, removeSubvolume, setReadOnly, subvolumeId } from "./btrfs.ts";
import { countersOf } from "./counters.ts";
import { type DiskSharing, type FileStorage, layersFolder, rootsFolder } from "./storage.ts";

/** What counts towards a limit: what is stored, and what is reserved for data and metadata not written yet. */
const counted = ["referenced", "rsv_data", "rsv_meta_pertrans", "rsv_meta_prealloc"];

export class Subvolumes implements FileStorage {
  readonly dir: string;
  readonly copies = true;
  /** Whether the kernel limits and counts what a sandbox stores, deleted open files and file names included. */
  readonly limits: boolean;
  readonly #helper: PrivilegedHelper | undefined;
  readonly #counters: string;

  private constructor(dir: string, counters: string, helper: PrivilegedHelper | undefined) {
    this.dir = dir;
    this.#counters = counters;
    this.#helper = helper;
    this.limits = helper !== undefined && existsSync(counters);
  }

  /** @param dir a folder of the mounted volume, which is made if it is missing */
  static async open(dir: string, helper: PrivilegedHelper | undefined): Promise<Subvolumes> {
    for (const folder of [dir, rootsFolder({ dir }), layersFolder({ dir })]) await mkdir(folder, { recursive: true, mode: 0o700 });
    return new Subvolumes(dir, countersOf(dir), helper);
  }

  async make(dir: string, bytes: number): Promise<void> {
    await attempted("make room for a sandbox", makeSubvolume(dir, this.limits ? bytes : undefined));
  }

  async makeLayer(dir: string): Promise<void> {
    await attempted("make room for a snapshot", makeSubvolume(dir));
  }

  contentOf(layer: string): string {
    return join(layer, "diff");
  }

  /** Copies the folder of a layer or of a sandbox, in its state at one moment. The copy is on disk when this resolves. */
  async copy(dir: string, to: string): Promise<void> {
    await attempted("copy the files of the sandbox", copySubvolume(dir, to));
  }

  /** Copies the folder of a sandbox as `copy` does, to become a layer: nothing can change in it. */
  async preserve(dir: string, layer: string): Promise<void> {
    await attempted("copy the files of the sandbox", copySubvolume(dir, layer, { isReadOnly: true }));
  }

  /** Changes a layer that nobody knows yet. */
  async change(layer: string, work: (dir: string) => Promise<void>): Promise<void> {
    await attempted("change the snapshot", setReadOnly(layer, false));
    await work(layer);
    await this.finishLayer(layer);
  }

  async finishLayer(layer: string): Promise<void> {
    await attempted("keep the snapshot", setReadOnly(layer, true));
  }

  async limit(dir: string, bytes: number): Promise<void> {
    if (!this.limits) return;
    // To set it again would take a little space, which there may not be.
    if (this.#count(dir, ["max_referenced"]) !== bytes) await this.#helper?.setQuota(subvolumeId(dir), bytes);
  }

  /** What the folder of a sandbox or a layer takes, or undefined when it could not be measured. Counts files only where the kernel counts nothing. */
  async use(dir: string): Promise<DiskUse | undefined> {
    if (!existsSync(this.#counters)) return layerUse(this.contentOf(dir));
    const bytes = this.#count(dir, counted);
    return bytes === undefined ? undefined : { bytes, files: 0 };
  }

  sharing(dir: string): DiskSharing | undefined {
    const [bytes, exclusiveBytes] = [this.#count(dir, ["referenced"]), this.#count(dir, ["exclusive"])];
    return bytes === undefined || exclusiveBytes === undefined ? undefined : { bytes, exclusiveBytes };
  }

  async remove(dir: string): Promise<void> {
    if (!existsSync(dir)) return;
    await attempted("remove files", removeSubvolume(dir)).catch((error: unknown) => {
      if (existsSync(dir)) throw error;
    });
  }

  /** The sum of what the kernel shows of a subvolume; undefined when it has just been removed. */
  #count(dir: string, names: readonly string[]): number | undefined {
    try {
      const id = subvolumeId(dir);
      return names.reduce((sum, name) => sum + Number(readFileSync(join(this.#counters, `0_${id}`, name), "utf8")), 0);
    } catch {
      return undefined;
    }
  }
}

/** @throws {SandgateError} `insufficient_storage`, `internal_error` */
async function attempted(action: string, change: Promise<void>): Promise<void> {
  try {
    await change;
  } catch (cause) {
    throw failure(action, cause);
  }
}

function failure(action: string, cause: unknown): SandgateError {
  const { code } = cause as NodeJS.ErrnoException;
  if (code === "ENOSPC" || code === "EDQUOT") return new SandgateError("insufficient_storage", "the host is out of disk space", { cause });
  return new SandgateError("internal_error", `the sandbox host could not ${action}`, { cause });
}
