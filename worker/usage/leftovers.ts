/** What sandboxes hold beyond what the kernel counts, found by thorough looks, and what their ended commands have left behind. */
import { inBackground } from "../../shared/util/background.ts";
import type { Logger } from "../../shared/util/log.ts";
import type { Container } from "../runtime/container/container.ts";
import type { Host } from "../runtime/host/host.ts";
import { signal } from "../runtime/process/proc.ts";
import type { Storages } from "../runtime/storage/storages.ts";
import type { LiveSandbox } from "../sandboxes/registry.ts";
import { HoldingsWatch } from "./holdings-watch.ts";
import { keepsMoreThan, memoryExcess } from "./limits.ts";
import type { Track, Tracks } from "./track.ts";

/** The share of memory that leftovers may keep after commands ended for their memory, and after any others. */
const cloggedShare = 0.5;
const fullShare = 0.9;

interface Parts {
  readonly tracks: Tracks;
  readonly limits: Host["limits"];
  readonly storages: Storages;
  readonly log: Logger;
  /** The most open files of a sandbox to examine; more would take too long. */
  readonly descriptorsMax: number;
  readonly endCommands: (sandbox: LiveSandbox, container: Container, reason: string) => void;
}

export class Leftovers {
  readonly #parts: Parts;
  readonly #holdings: HoldingsWatch;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#holdings = new HoldingsWatch(parts.descriptorsMax);
  }

  /** The shared memory of the machine has grown: anybody's segments may have. */
  noteSharedGrowth(): void {
    this.#holdings.noteSharedGrowth();
  }

  stop(): Promise<void> {
    return this.#holdings.stop();
  }

  /** Takes a thorough look at sandboxes that run or recently ran commands, and at once when one may be over its memory limit. */
  consider(sandbox: LiveSandbox, container: Container, members: readonly number[]): void {
    const { limits, tracks, log } = this.#parts;
    const track = tracks.of(container);
    const mayBeOver = !limits.memory && memoryExcess(sandbox, track.usage.memoryBytes) !== undefined;
    const isUrgent = mayBeOver || (track.endedForMemory && members.length === 1);
    if (isUrgent || (track.isLookStale && Date.now() >= track.lookDueAtMs)) {
      inBackground(log, "usage could not be measured", () => this.look(sandbox, container, members, isUrgent));
    }
  }

  async look(sandbox: LiveSandbox, container: Container, members: readonly number[], urgent: boolean): Promise<void> {
    const { limits, tracks, storages, endCommands } = this.#parts;
    const track = tracks.of(container);
    if (track.isEnding(members)) return;
    const memory = !limits.memory;
    const { endings, activity } = track;
    const holdings = await this.#holdings.look({ track, container, members, memory }, urgent);
    // The commands that it saw may have been ended meanwhile.
    if (!holdings || sandbox.container !== container || track.endings !== endings) return;
    if (members.length === 1 && track.activity === activity) track.isLookStale = false;
    // What the kernel counts in the layer includes unlinked files.
    sandbox.unlisted = storages.limits(container.writableLayer) ? { bytes: holdings.mountedBytes, files: 0 } : holdings.unlisted;
    const excess = memory ? memoryExcess(sandbox, track.usage.memoryBytes) : undefined;
    if (excess && members.length > 1) {
      track.endedForMemory = true;
      endCommands(sandbox, container, excess);
    } else if (members.length === 1 && (!memory || excess !== undefined || track.endedForMemory)) await this.#free(sandbox, container, track);
  }

  /**
   * Restarts the container when its ended commands left so much in memory that the next one may not fit; the leftovers go
   * with the container's namespaces. Call it only while no command runs, since that command's memory would be counted, too.
   */
  async #free(sandbox: LiveSandbox, container: Container, track: Track): Promise<void> {
    const { limits, log } = this.#parts;
    const share = track.endedForMemory ? cloggedShare : fullShare;
    track.endedForMemory = false;
    const keeps = (): number => (limits.memory ? (container.group?.usage().memoryBytes ?? 0) : track.sharedBytes);
    if (!keepsMoreThan(share, sandbox, keeps())) return;
    // What the kernel keeps only to be quick, such as the names of files, is no leftover.
    await container.group?.reclaim();
    const bytes = keeps();
    if (!keepsMoreThan(share, sandbox, bytes) || sandbox.activities.size > 0) return;
    log.warn({ event: "memory_left", sandbox: sandbox.record.id, bytes }, "a sandbox is restarted to free the memory its commands left behind");
    signal(container.initPid, "SIGKILL", container.pidNamespace);
  }
}
