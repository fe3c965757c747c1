/** Measures what sandboxes have written. Where files are counted one by one, that takes time, so it is done sparingly. */
import { dirname } from "node:path";
import type { Container } from "../runtime/container/container.ts";
import { layerUse } from "../runtime/filesystem/disk.ts";
import type { Storages } from "../runtime/storage/storages.ts";
import type { LiveSandbox } from "../sandboxes/registry.ts";
import type { Track, Tracks } from "./track.ts";

/** The pause before a layer is measured again: at least this, and this multiple of the last measurement's duration. */
const restMsMin = 500;
const restFactor = 10;
/** The same while the disk is below its floor. */
const urgentRestFactor = 2;

export class LayerSizes {
  readonly #tracks: Tracks;
  readonly #storages: Storages;

  constructor(tracks: Tracks, storages: Storages) {
    this.#tracks = tracks;
    this.#storages = storages;
  }

  /** Whether it is time to measure a layer again. @param isUrgent whether the disk is below its floor */
  isDue({ diskStale }: LiveSandbox, container: Container, isUrgent: boolean): boolean {
    const { diskDueAtMs, diskMeasuredAtMs, diskTookMs } = this.#tracks.of(container);
    return diskStale && Date.now() >= Math.min(diskDueAtMs, isUrgent ? diskMeasuredAtMs + urgentRestFactor * diskTookMs : Number.POSITIVE_INFINITY);
  }

  /** Measures the writable layer now; concurrent callers share one measurement. */
  async measure(sandbox: LiveSandbox): Promise<void> {
    const { container } = sandbox;
    if (!container) return;
    const track = this.#tracks.of(container);
    track.diskRunning ??= this.#measure(sandbox, container, track).finally(() => {
      track.diskRunning = undefined;
    });
    await track.diskRunning;
  }

  async #measure(sandbox: LiveSandbox, { writableLayer: layer }: Container, track: Track): Promise<void> {
    if (!layer) return;
    const startedAtMs = Date.now();
    sandbox.diskStale = sandbox.activities.size > 0;
    const use = (await this.#storages.volumeOf(layer)?.use(dirname(layer))) ?? (await layerUse(layer));
    if (use) sandbox.layer = use;
    track.diskMeasuredAtMs = startedAtMs;
    track.diskTookMs = Date.now() - startedAtMs;
    track.diskDueAtMs = Date.now() + Math.max(restMsMin, restFactor * track.diskTookMs);
  }
}
