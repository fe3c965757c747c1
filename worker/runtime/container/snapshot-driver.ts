/** Captures the files of a sandbox: by copying them, or all at once where they are a subvolume. */
import { dirname } from "node:path";

import { pause } from "../../../shared/waiting.ts";
import { copyStillTree } from "../filesystem/deep-copy.ts";
import { copyTree, emptyFolder, fingerprintOf, PathTooLong, syncTree } from "../filesystem/tree.ts";
import { partialSuffix } from "../storage/storage.ts";
import type { Subvolumes } from "../storage/subvolumes.ts";
import type { Container } from "./container.ts";

/** `application`: nothing runs in the sandbox meanwhile. `crash`: nothing is stopped if one moment's state can be had without. */
export type Consistency = "application" | "crash";

export interface Captured {
  readonly consistency: Consistency;
  /** How long nothing ran in the sandbox. */
  readonly pauseMs: number;
}

/** Lets an action happen while nothing runs in a container. */
export interface Standstill {
  /** @throws {SandgateError} `conflict` when the container cannot be stopped, and whatever the action throws. */
  during(container: Container, action: () => Promise<void>): Promise<{ readonly pauseMs: number }>;
}

export interface SnapshotDriver {
  /**
   * Copies the sandbox's own files, in their state at one moment, to the folder of a new layer.
   *
   * @throws {SandgateError} `conflict` when the sandbox cannot be frozen, `insufficient_storage`.
   */
  capture(container: Container & { writableLayer: string }, dir: string, consistency: Consistency): Promise<Captured>;
}

/** Attempts to copy without freezing, before a sandbox that writes all the time is frozen briefly. */
const runningTries = 2;
/** Longer than the granularity of the kernel's file change times. */
const tickMs = 20;

/** Copies the writable layer file by file, into an empty folder. */
export class FilesystemDriver implements SnapshotDriver {
  readonly #standstill: Standstill;

  constructor(standstill: Standstill) {
    this.#standstill = standstill;
  }

  async capture(container: Container & { writableLayer: string }, dir: string, consistency: Consistency): Promise<Captured> {
    const layer = container.writableLayer;
    if (consistency === "crash") {
      for (let tries = 0; tries < runningTries; tries++) {
        if (await copyUnchanged(layer, dir)) return { consistency, pauseMs: 0 };
      }
    } else {
      // Done first, so that the processes are not frozen for it.
      await syncTree(layer);
    }
    const { pauseMs } = await this.#standstill.during(container, () => copyStill(layer, dir));
    return { consistency, pauseMs };
  }
}

/** Copies the whole folder of a sandbox at once, to where nothing is yet. */
export class SubvolumeDriver implements SnapshotDriver {
  readonly #standstill: Standstill;
  readonly #subvolumes: Subvolumes;

  constructor(standstill: Standstill, subvolumes: Subvolumes) {
    this.#standstill = standstill;
    this.#subvolumes = subvolumes;
  }

  async capture(container: Container & { writableLayer: string }, dir: string, consistency: Consistency): Promise<Captured> {
    const files = dirname(container.writableLayer);
    const flushed = `${dir}${partialSuffix}`;
    try {
      // Made only to bring to disk what the sandbox has written, so that it is not frozen for that.
      await this.#subvolumes.copy(files, flushed);
      // Of files that are written meanwhile, a copy can have a later change of one without an earlier change of another. So
      // nothing may run for either kind of snapshot.
      const { pauseMs } = await this.#standstill.during(container, () => this.#subvolumes.preserve(files, dir));
      return { consistency, pauseMs };
    } finally {
      await this.#subvolumes.remove(flushed);
    }
  }
}

/**
 * Copies while everything runs, and returns whether nothing has changed meanwhile: only then is the copy the state of one moment.
 * The files are synced after the first fingerprint, because an already dirty page of a mapped file can be written again
 * without a trace.
 */
async function copyUnchanged(layer: string, dir: string): Promise<boolean> {
  const before = await fingerprintOf(layer);
  await syncTree(layer);
  await pause(tickMs);
  const isWhole = await copyAnew(layer, dir).catch(unlessTooLong);
  return isWhole && before === (await fingerprintOf(layer));
}

/** Copies into a folder that may hold the remains of an earlier attempt. */
async function copyAnew(layer: string, dir: string): Promise<boolean> {
  await emptyFolder(dir);
  return copyTree(layer, dir);
}

/** Follows overlong paths step by step, which is safe only while nobody can change them. */
async function copyStill(layer: string, dir: string): Promise<void> {
  const isCopied = await copyAnew(layer, dir).then(() => true, unlessTooLong);
  if (isCopied) return;
  await emptyFolder(dir);
  await copyStillTree(layer, dir);
}

function unlessTooLong(error: unknown): false {
  if (error instanceof PathTooLong) return false;
  throw error;
}
