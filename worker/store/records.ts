/** What a worker records about its sandboxes. Snapshots are recorded as their directory entries. */
import type { BaseImage, Layer, SandboxEntry, SandboxMove } from "../../shared/bus/entries.ts";
import type { MemoryWish } from "../../shared/memory.ts";

/** The worker's record of a sandbox. */
export interface SandboxRecord extends Omit<SandboxEntry, "move" | "moved_to" | "handed_over"> {
  readonly env_vars: Readonly<Record<string, string>>;
  /** Whether the caller was told about the sandbox. A restart drops sandboxes that were never acknowledged. */
  readonly acknowledged: boolean;
  readonly container_id?: string;
  /** What its files were made from; absent in a sandbox of an earlier version, whose files Podman created from an image. */
  readonly root?: RootSource;
  /** Present until it has started. */
  readonly memory_from?: MemorySource | undefined;
  readonly move?: SandboxMove | undefined;
}

/** The image of memory with which a sandbox is to start. */
export interface MemorySource {
  readonly image: number;
  /** Whether it may start without, if that image turns out to be of no use. */
  readonly wish: MemoryWish;
  /** Where to fetch it first: the worker that stored it, as which layer, and the number by which all machines know it. */
  readonly from?: { readonly workerId: string; readonly layer: string; readonly identity: number };
}

/** Layers over an image; or an image alone. */
export interface RootSource {
  readonly base: BaseImage;
  /** Topmost first, by their ids on this worker. */
  readonly layers: readonly Layer[];
  /** Where to fetch them: the worker that stored them, and the ids under which it did. */
  readonly from?: { readonly workerId: string; readonly layers: readonly string[]; readonly base: string };
  /** The fetched layer that the sandbox's own files began as. It is kept, so that further sandboxes need not fetch it again. */
  readonly fetched?: Layer;
  /** The layer of this worker that the sandbox's own files began as. It need not be there any more. */
  readonly origin?: string;
  /** The image that replaces `base`, until it has been looked up. */
  readonly over?: string | undefined;
}

/** An image that has not been looked up yet. */
export const unknownBase: BaseImage = { id: "", env: [], working_dir: "/", user: "" };

/** Nothing but an image. */
export const rootOver = (image: string): RootSource => ({ base: unknownBase, layers: [], over: image });

export interface UsageSample {
  readonly at_ms: number;
  readonly cpu_percent: number;
  readonly memory_mb: number;
}
