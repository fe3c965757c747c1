/** Watches what sandboxes and the host use: samples for `status`, limits that the kernel does not enforce for us. */

import { readFileSync } from "node:fs";
import { availableParallelism, freemem, loadavg } from "node:os";
import type { Config } from "../../shared/config.ts";
import type { Logger } from "../../shared/log.ts";
import type { Container } from "../runtime/container.ts";
import { freeBytes, layerBytes } from "../runtime/disk.ts";
import type { Host } from "../runtime/host.ts";
import { killAll, pidNamespaceOf, processesByNamespace } from "../runtime/proc.ts";
import type { LiveSandbox, Sandboxes } from "../sandboxes/registry.ts";
import type { Store } from "../store.ts";
import { excessOf } from "./limits.ts";
import { cpuSecondsBetween, type Reading, readCounters } from "./measure.ts";

const tickMs = 500;
const sampleMs = 10_000;
const sweepMs = 600_000;
const day = 86_400_000;
/** A layer is not measured again before this many times the last measurement's duration has passed. */
const diskRestFactor = 10;

export interface Usage {
  /** 0-100 of the sandbox's own CPU allowance. */
  readonly cpuPercent: number;
  readonly memoryBytes: number;
  readonly processes: number;
}

interface Track {
  reading: Reading;
  readAtMs: number;
  usage: Usage;
  diskDueAtMs: number;
  diskRunning: Promise<void> | undefined;
}

const nothing: Usage = { cpuPercent: 0, memoryBytes: 0, processes: 0 };

export class UsageMonitor {
  /** Free resources of the host, refreshed twice a second. */
  host = { memoryFreeBytes: freemem(), diskFreeBytes: Number.MAX_SAFE_INTEGER, loadPerCpu: 0 };
  readonly #config: Config;
  readonly #limits: Host["limits"];
  readonly #sandboxes: Sandboxes;
  readonly #store: Store;
  readonly #log: Logger;
  readonly #onLost: (sandbox: LiveSandbox) => void;
  readonly #tracks = new WeakMap<LiveSandbox, Track>();
  readonly #timers: NodeJS.Timeout[] = [];
  #sampledAtMs = Date.now();
  #ticking = false;

  constructor(parts: { config: Config; host: Host; sandboxes: Sandboxes; store: Store; log: Logger; onLost: (sandbox: LiveSandbox) => void }) {
    this.#config = parts.config;
    this.#limits = parts.host.limits;
    this.#sandboxes = parts.sandboxes;
    this.#store = parts.store;
    this.#log = parts.log;
    this.#onLost = parts.onLost;
  }

  async start(): Promise<void> {
    await this.#look();
    this.#timers.push(
      setInterval(() => void this.#tick(), tickMs),
      setInterval(() => void this.#sweep(), sweepMs),
    );
  }

  stop(): void {
    for (const timer of this.#timers) clearInterval(timer);
  }

  /** The usage at the last look, at most half a second ago. */
  current(sandbox: LiveSandbox): Usage {
    return this.#tracks.get(sandbox)?.usage ?? nothing;
  }

  /** Measures the writable layer now; callers at the same time share one measurement. */
  async measureDisk(sandbox: LiveSandbox): Promise<void> {
    const track = this.#track(sandbox);
    track.diskRunning ??= this.#measure(sandbox, track).finally(() => {
      track.diskRunning = undefined;
    });
    await track.diskRunning;
  }

  async #measure(sandbox: LiveSandbox, track: Track): Promise<void> {
    const layer = sandbox.container?.writableLayer;
    if (!layer) return;
    const startedAtMs = Date.now();
    sandbox.diskStale = sandbox.activities.size > 0;
    const bytes = await layerBytes(layer);
    if (bytes !== undefined) sandbox.diskBytes = bytes;
    track.diskDueAtMs = Date.now() + Math.max(tickMs, diskRestFactor * (Date.now() - startedAtMs));
  }

  async #tick(): Promise<void> {
    if (this.#ticking) return;
    this.#ticking = true;
    try {
      await this.#look();
    } catch (error) {
      this.#log.error({ err: error }, "usage could not be measured");
    } finally {
      this.#ticking = false;
    }
  }

  async #look(): Promise<void> {
    const [load = 0] = loadavg();
    this.host = {
      memoryFreeBytes: availableMemory(),
      diskFreeBytes: await freeBytes(this.#config.storageDir),
      loadPerCpu: Math.round((load / availableParallelism()) * 100) / 100,
    };
    const spaces = processesByNamespace();
    const sampling = Date.now() - this.#sampledAtMs >= sampleMs;
    if (sampling) this.#sampledAtMs = Date.now();
    for (const sandbox of this.#sandboxes.all()) this.#lookAt(sandbox, spaces, sampling);
  }

  #lookAt(sandbox: LiveSandbox, spaces: ReadonlyMap<string, number[]>, sampling: boolean): void {
    const { container, record } = sandbox;
    if (!container) return;
    if (pidNamespaceOf(container.initPid) !== container.pidNamespace) return this.#onLost(sandbox);
    const members = spaces.get(container.pidNamespace) ?? [];
    const track = this.#track(sandbox);
    // To read the counters of thousands of processes would give a fork bomb the time to grow.
    const isFlooded = !this.#limits.pids && members.length > this.#config.sandboxPidsMax;
    this.#updateUsage(track, isFlooded ? track.reading : readCounters(container, members), members.length, record.cpu);
    if (members.length > 1) sandbox.diskStale = true;
    if (sandbox.diskStale && Date.now() >= track.diskDueAtMs) void this.measureDisk(sandbox);
    if (sampling) this.#sample(record.id, track.usage);
    const excess = excessOf(sandbox, track.usage, {
      enforced: this.#limits,
      pidsMax: this.#config.sandboxPidsMax,
      hostIsFull: this.host.diskFreeBytes < this.#config.diskFloorBytes,
    });
    if (excess && members.length > 1) this.#endCommands(sandbox, container, excess);
  }

  #updateUsage(track: Track, reading: Reading, processes: number, cpus: number): void {
    const now = Date.now();
    const allowanceSeconds = ((now - track.readAtMs) / 1_000) * cpus;
    const share = allowanceSeconds > 0 ? cpuSecondsBetween(track.reading, reading) / allowanceSeconds : 0;
    track.usage = { cpuPercent: Math.min(100, Math.round(share * 10_000) / 100), memoryBytes: reading.memoryBytes, processes };
    track.reading = reading;
    track.readAtMs = now;
  }

  #endCommands(sandbox: LiveSandbox, { pidNamespace, initPid }: Container, reason: string): void {
    this.#log.warn({ event: "limit_exceeded", sandbox: sandbox.record.id, reason }, "the commands of a sandbox are ended");
    for (const activity of sandbox.activities) activity.killFor(reason);
    killAll(pidNamespace, initPid);
    sandbox.diskStale = true;
  }

  #sample(sandboxId: string, usage: Usage): void {
    const sample = { at_ms: Date.now(), cpu_percent: usage.cpuPercent, memory_mb: Math.round((usage.memoryBytes / 1024 ** 2) * 100) / 100 };
    this.#store.putSample(sandboxId, sample).catch((err) => this.#log.error({ err }, "a usage sample could not be kept"));
  }

  async #sweep(): Promise<void> {
    await this.#store.expire(Date.now() - 7 * day, Date.now() - day).catch((err) => this.#log.error({ err }, "old records could not be removed"));
  }

  #track(sandbox: LiveSandbox): Track {
    let track = this.#tracks.get(sandbox);
    if (!track) {
      track = {
        reading: { memoryBytes: 0, cpuSeconds: 0, byProcess: new Map() },
        readAtMs: Date.now(),
        usage: nothing,
        diskDueAtMs: 0,
        diskRunning: undefined,
      };
      this.#tracks.set(sandbox, track);
    }
    return track;
  }
}

/** Memory that programs can still get, caches that the kernel would give up included. */
function availableMemory(): number {
  const kib = /^MemAvailable:\s+(\d+)/m.exec(readFileSync("/proc/meminfo", "utf8"))?.[1];
  return kib ? Number(kib) * 1024 : freemem();
}
