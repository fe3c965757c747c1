/** What the last looks found out about one sandbox's use. */
import type { Container } from "../runtime/container/container.ts";
import { cpuSecondsBetween, type Reading } from "./measure.ts";

export interface Usage {
  /** 0-100, percent of the sandbox's own CPU allowance. */
  readonly cpuPercent: number;
  readonly memoryBytes: number;
  readonly processes: number;
}

/** The memory of a sandbox as found by a thorough look. */
export interface MemoryFound {
  /** Everything, with shared pages counted once. */
  readonly bytes: number;
  /** The part that outlives the processes, or may do so. */
  readonly sharedBytes: number;
  /** What the quick look would have reported at that moment. */
  readonly residentBytes: number;
}

export const noUse: Usage = { cpuPercent: 0, memoryBytes: 0, processes: 0 };

/** A sandbox is busy when it has used more than this percentage of its CPU, averaged over about `averagedMs`. */
const busyPercent = 25;
const averagedMs = 1_000;

/** A process that takes longer than this to die counts like any other. */
const dyingMsMax = 5_000;

/** The track of each run of a container; a restarted container gets a new one. */
export class Tracks {
  readonly #tracks = new WeakMap<Container, Track>();

  of(container: Container): Track {
    const track = this.#tracks.get(container) ?? new Track();
    this.#tracks.set(container, track);
    return track;
  }
}

export class Track {
  usage = noUse;
  /** How often the sandbox's commands were ended. */
  endings = 0;
  #dying: ReadonlySet<number> = new Set();
  #endedAtMs = 0;
  /** When the layer may be measured again, when it last was, and how long that took. */
  diskDueAtMs = 0;
  diskMeasuredAtMs = 0;
  diskTookMs = 0;
  diskRunning: Promise<void> | undefined;
  /** Open files of all processes at the last look. */
  descriptors = 0;
  lookDueAtMs = 0;
  /** How often something was noticed to run. Commands that end between two looks at all processes say so themselves. */
  activity = 0;
  /** Whether anything ran since the last thorough look. */
  isLookStale = true;
  lookedAtMs = 0;
  segmentBytes = 0;
  segmentsReadAtMs = 0;
  /** Set when commands were ended for their memory, until a look has shown what they left behind. */
  endedForMemory = false;
  /** Whether its CPU weight is that of a busy sandbox; undefined for what an earlier process may have weighed. */
  isWeighedAsBusy: boolean | undefined;
  #averagePercent = 0;
  #reading: Reading = { memoryBytes: 0, cpuSeconds: 0, byProcess: new Map() };
  #readAtMs = Date.now();
  #found: MemoryFound | undefined;
  #oomKills: number | undefined;

  /** Whether it has used much CPU for a while. Other sandboxes with short tasks then come first. */
  get isBusy(): boolean {
    return this.#averagePercent > busyPercent;
  }

  get reading(): Reading {
    return this.#reading;
  }

  /** Notes that the sandbox's commands were ended; `processes` are about to die. */
  ended(processes: readonly number[]): void {
    this.endings++;
    this.#dying = new Set(processes);
    this.#endedAtMs = Date.now();
  }

  /** Whether some of the processes belong to commands that were ended; the next command must not be blamed for them. */
  isEnding(members: readonly number[]): boolean {
    return Date.now() - this.#endedAtMs < dyingMsMax && members.some((pid) => this.#dying.has(pid));
  }

  /** What may outlive the processes, at the last thorough look. */
  get sharedBytes(): number {
    return this.#found?.sharedBytes ?? 0;
  }

  /** @param isCounted whether the reading covers everything, as a cgroup's does. */
  note(reading: Reading, processes: number, cpus: number, isCounted: boolean): void {
    const now = Date.now();
    const allowanceSeconds = ((now - this.#readAtMs) / 1_000) * cpus;
    const share = allowanceSeconds > 0 ? cpuSecondsBetween(this.#reading, reading) / allowanceSeconds : 0;
    const cpuPercent = Math.min(100, Math.round(share * 10_000) / 100);
    this.#averagePercent += (cpuPercent - this.#averagePercent) * (1 - Math.exp(-(now - this.#readAtMs) / averagedMs));
    this.#reading = reading;
    this.#readAtMs = now;
    this.usage = { cpuPercent, memoryBytes: isCounted ? reading.memoryBytes : this.#estimate(), processes };
  }

  noteActivity(): void {
    this.activity++;
    this.isLookStale = true;
  }

  /** Notes how often the kernel has killed processes for their memory, which may have left something behind. */
  noteOomKills(count: number): void {
    if (this.#oomKills !== undefined && count > this.#oomKills) this.endedForMemory = this.isLookStale = true;
    this.#oomKills = count;
  }

  /** Notes the findings of a thorough look; `usage` is exact then. */
  found(memory: MemoryFound): void {
    this.#found = memory;
    this.usage = { ...this.usage, memoryBytes: memory.bytes };
  }

  /**
   * The findings of the last thorough look, plus the change since then by the quick look. The quick look counts shared pages
   * several times, so this may be too high until the next thorough look. It is too low only for files in memory.
   */
  #estimate(): number {
    if (!this.#found) return this.#reading.memoryBytes;
    const { bytes, sharedBytes, residentBytes } = this.#found;
    return Math.max(sharedBytes, bytes + this.#reading.memoryBytes - residentBytes);
  }
}
