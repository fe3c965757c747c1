/** What a worker keeps of its sandboxes. Snapshots are kept as the directory has them. */
import type { BaseImage, Layer, SandboxEntry } from "../../shared/bus/entries.ts";

/** A sandbox as its worker keeps it. */
export interface SandboxRecord extends SandboxEntry {
  readonly env_vars: Readonly<Record<string, string>>;
  /** Whether its maker was promised it before it ran; one that nobody knows of is dropped at a restart. */
  readonly acknowledged: boolean;
  readonly container_id?: string;
  /** What a restored sandbox was made from; absent where Podman made its files from an image. */
  readonly root?: RootSource;
}

/** Layers over an image. */
export interface RootSource {
  readonly base: BaseImage;
  /** Topmost first, as they are called here. */
  readonly layers: readonly Layer[];
  /** Where they can be fetched: the worker that stored them, and what they are called there where that is something else. */
  readonly from?: { readonly workerId: string; readonly layers: readonly string[]; readonly base: string };
  /** The image that takes the place of `base`, until it has been looked up. */
  readonly over?: string | undefined;
}

export interface UsageSample {
  readonly at_ms: number;
  readonly cpu_percent: number;
  readonly memory_mb: number;
}
