/** What is known of one sandbox's use from the last looks at it. */
import { cpuSecondsBetween, type Reading } from "./measure.ts";

export interface Usage {
  /** 0-100 of the sandbox's own CPU allowance. */
  readonly cpuPercent: number;
  readonly memoryBytes: number;
  readonly processes: number;
}

/** The memory of a sandbox as a thorough look has found it. */
export interface MemoryFound {
  /** Everything, shared pages once. */
  readonly bytes: number;
  /** Of that, what stays when all processes end, or may. */
  readonly sharedBytes: number;
  /** What the quick look would have said at that moment. */
  readonly residentBytes: number;
}

export const noUse: Usage = { cpuPercent: 0, memoryBytes: 0, processes: 0 };

/** A sandbox is busy when it has used so much of its CPU, on average over about that time. */
const busyPercent = 25;
const averagedMs = 5_000;

/** A process that the kernel keeps from dying for longer counts like any other. */
const dyingMsMax = 5_000;

export class Track {
  usage = noUse;
  /** How often its commands were ended. */
  endings = 0;
  #dying: ReadonlySet<number> = new Set();
  #endedAtMs = 0;
  /** When the layer may be measured again, and when it was last. */
  diskDueAtMs = 0;
  diskMeasuredAtMs = 0;
  diskTookMs = 0;
  diskRunning: Promise<void> | undefined;
  /** Open files of all processes at the last look. */
  descriptors = 0;
  lookDueAtMs = 0;
  /** Whether anything ran since the last thorough look. */
  isLookStale = true;
  lookedAtMs = 0;
  segmentBytes = 0;
  segmentsReadAtMs = 0;
  /** Set when its commands were ended for their memory, until a look has shown what they left behind. */
  endedForMemory = false;
  /** Whether its weight is that of a busy one. */
  isWeighedAsBusy = false;
  #averagePercent = 0;
  #reading: Reading = { memoryBytes: 0, cpuSeconds: 0, byProcess: new Map() };
  #readAtMs = Date.now();
  #found: MemoryFound | undefined;

  /** Whether it has used much CPU for a while: others with something short to do come first. */
  get isBusy(): boolean {
    return this.#averagePercent > busyPercent;
  }

  get reading(): Reading {
    return this.#reading;
  }

  /** Its commands were ended, which these processes are about to notice. */
  ended(processes: readonly number[]): void {
    this.endings++;
    this.#dying = new Set(processes);
    this.#endedAtMs = Date.now();
  }

  /** Whether what is seen now belongs, for a part, to commands that were ended: the next command must not answer for it. */
  isEnding(members: readonly number[]): boolean {
    return Date.now() - this.#endedAtMs < dyingMsMax && members.some((pid) => this.#dying.has(pid));
  }

  /** At the last thorough look, what may outlive the processes. */
  get sharedBytes(): number {
    return this.#found?.sharedBytes ?? 0;
  }

  /** @param isCounted whether the reading says all there is, as that of a cgroup does. */
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

  /** What a thorough look has found; `usage` is exact then. */
  found(memory: MemoryFound): void {
    this.#found = memory;
    this.usage = { ...this.usage, memoryBytes: memory.bytes };
  }

  /**
   * What a thorough look found, and what has come or gone since by the quick one, for which pages that are shared count
   * several times: it may be too much until the next thorough look, and not too little but for files in memory.
   */
  #estimate(): number {
    if (!this.#found) return this.#reading.memoryBytes;
    const { bytes, sharedBytes, residentBytes } = this.#found;
    return Math.max(sharedBytes, bytes + this.#reading.memoryBytes - residentBytes);
  }
}
