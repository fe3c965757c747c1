/** Watches what sandboxes and the host use: samples for `status`, and limits that the kernel does not enforce. */
import { dirname } from "node:path";
import type { Config } from "../../shared/config.ts";
import { every, inBackground } from "../../shared/util/background.ts";
import type { Logger } from "../../shared/util/log.ts";
import type { Container } from "../runtime/container/container.ts";
import { type DiskUse, layerUse } from "../runtime/filesystem/disk.ts";
import type { Host } from "../runtime/host/host.ts";
import { killAll, pidNamespaceOf, processesByNamespace, signal } from "../runtime/process/proc.ts";
import type { Storages } from "../runtime/storage/storages.ts";
import { type LiveSandbox, type Sandboxes, storedUse } from "../sandboxes/registry.ts";
import type { Store } from "../store/store.ts";
import type { Writer } from "./disk-floor.ts";
import type { Disks } from "./disks.ts";
import { HoldingsWatch } from "./holdings-watch.ts";
import { hostMemory, loadPerCpu } from "./host-use.ts";
import { excessOf, keepsMoreThan, memoryExcess, promisedBytes } from "./limits.ts";
import { readCounters } from "./measure.ts";
import { noUse, Track, type Usage } from "./track.ts";

const MiB = 1024 ** 2;
const tickMs = 500;
/** How often to check whether memory drops so fast that the next tick would be too late. */
const hurryMs = 100;
/** If this much of the host's memory is gone since the last tick, the next tick runs at once. */
const hurryBytes = 128 * MiB;
/** Growth of shared memory that is normal noise on any machine. */
const sharedNoiseBytes = MiB;
/** The share of memory that leftovers may keep after commands ended for their memory, and after any others. */
const cloggedShare = 0.5;
const fullShare = 0.9;
const sampleMs = 10_000;
const sweepMs = 600_000;
const day = 86_400_000;
const noFiles: DiskUse = { bytes: 0, files: 0 };
const unmeasured = "usage could not be measured";
/** The pause before a layer is measured again, as a multiple of the last measurement's duration. */
const diskRestFactor = 10;

interface Parts {
  readonly config: Config;
  readonly disks: Disks;
  readonly host: Host;
  readonly storages: Storages;
  readonly sandboxes: Sandboxes;
  readonly store: Store;
  readonly log: Logger;
  readonly onLost: (sandbox: LiveSandbox) => void;
}

export class UsageMonitor {
  /** Free resources of the host, refreshed twice a second. */
  host = { memoryFreeBytes: 0, diskFreeBytes: Number.MAX_SAFE_INTEGER, loadPerCpu: 0 };
  readonly #config: Config;
  readonly #limits: Host["limits"];
  readonly #sandboxes: Sandboxes;
  readonly #store: Store;
  readonly #log: Logger;
  readonly #onLost: (sandbox: LiveSandbox) => void;
  readonly #tracks = new WeakMap<Container, Track>();
  readonly #holdings: HoldingsWatch;
  readonly #timers: NodeJS.Timeout[] = [];
  readonly #disks: Disks;
  readonly #storages: Storages;
  readonly #startedAtMs = Date.now();
  #shared = 0;
  #sampledAtMs = Date.now();
  #ticking = false;

  constructor({ config, disks, host, storages, sandboxes, store, log, onLost }: Parts) {
    this.#config = config;
    this.#limits = host.limits;
    this.#sandboxes = sandboxes;
    this.#store = store;
    this.#log = log;
    this.#onLost = onLost;
    this.#holdings = new HoldingsWatch(this.#descriptorsMax);
    this.#disks = disks;
    this.#storages = storages;
  }

  async start(): Promise<void> {
    await this.#look();
    void this.#sweep();
    this.#timers.push(
      every(tickMs, this.#log, unmeasured, () => this.#tick()),
      every(hurryMs, this.#log, unmeasured, () => this.#hurry()),
      every(sweepMs, this.#log, "old records could not be removed", () => this.#sweep()),
    );
  }

  async stop(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    await this.#holdings.stop();
  }

  /** The usage at the last look, at most half a second old. */
  current(sandbox: LiveSandbox): Usage {
    return sandbox.container ? this.#track(sandbox.container).usage : noUse;
  }

  /** Why `more` cannot be stored on this host, or undefined. */
  diskShortage(more?: DiskUse): string | undefined {
    return this.#disks.shortage(more);
  }

  /** Resolves when all sandboxes can write what they were promised, or when the volume cannot be made larger now. */
  makeRoom(): Promise<void> {
    return this.#disks.makeRoom(promisedBytes(this.#sandboxes));
  }

  /** Measures the writable layer now; concurrent callers share one measurement. */
  async measureDisk(sandbox: LiveSandbox): Promise<void> {
    const { container } = sandbox;
    if (!container) return;
    const track = this.#track(container);
    track.diskRunning ??= this.#measure(sandbox, container, track).finally(() => {
      track.diskRunning = undefined;
    });
    await track.diskRunning;
  }

  /** Takes a thorough look at the sandbox now. */
  async measureHoldings(sandbox: LiveSandbox): Promise<void> {
    const { container } = sandbox;
    const members = container && processesByNamespace().get(container.pidNamespace);
    if (members && !this.#isFlooded(members)) await this.#lookThoroughly(sandbox, container, members, true);
  }

  async #measure(sandbox: LiveSandbox, { writableLayer: layer }: Container, track: Track): Promise<void> {
    if (!layer) return;
    const startedAtMs = Date.now();
    sandbox.diskStale = sandbox.activities.size > 0;
    const use = (await this.#storages.volumeOf(layer)?.use(dirname(layer))) ?? (await layerUse(layer));
    if (use) sandbox.layer = use;
    track.diskMeasuredAtMs = startedAtMs;
    track.diskTookMs = Date.now() - startedAtMs;
    track.diskDueAtMs = Date.now() + Math.max(tickMs, diskRestFactor * track.diskTookMs);
  }

  /** Ticks early when memory is taken much faster than the regular ticks come. */
  async #hurry(): Promise<void> {
    if (this.host.memoryFreeBytes - hostMemory().availableBytes > hurryBytes) await this.#tick();
  }

  async #tick(): Promise<void> {
    if (this.#ticking) return;
    this.#ticking = true;
    try {
      await this.#look();
    } finally {
      this.#ticking = false;
    }
  }

  async #look(): Promise<void> {
    const memory = hostMemory();
    await this.#disks.refresh(promisedBytes(this.#sandboxes));
    this.host = {
      memoryFreeBytes: memory.availableBytes,
      diskFreeBytes: this.#disks.freeBytes,
      loadPerCpu: loadPerCpu(),
    };
    if (memory.sharedBytes > this.#shared + sharedNoiseBytes) this.#holdings.noteSharedGrowth();
    this.#shared = memory.sharedBytes;
    const spaces = processesByNamespace();
    const sampling = Date.now() - this.#sampledAtMs >= sampleMs;
    if (sampling) this.#sampledAtMs = Date.now();
    // One sandbox that cannot be read must not leave the others unwatched.
    for (const sandbox of this.#sandboxes.all()) inBackground(this.#log, unmeasured, () => this.#lookAt(sandbox, spaces, sampling));
    for (const { sandbox, reason } of this.#disks.offenders([...this.#sandboxes.all()], (one) => this.#writerOf(one, spaces))) {
      if (sandbox.container) this.#endCommands(sandbox, sandbox.container, reason);
    }
  }

  #lookAt(sandbox: LiveSandbox, spaces: ReadonlyMap<string, number[]>, sampling: boolean): void {
    const { container, record } = sandbox;
    if (!container) return;
    if (pidNamespaceOf(container.initPid) !== container.pidNamespace) return this.#onLost(sandbox);
    const members = spaces.get(container.pidNamespace) ?? [];
    const track = this.#track(container);
    // Reading the counters of thousands of processes would give a fork bomb time to grow.
    const isFlooded = this.#isFlooded(members);
    const reading = isFlooded ? track.reading : readCounters(container, members);
    track.note(reading, members.length, record.cpu, !reading.byProcess);
    if (this.#limits.memory) track.noteOomKills(container.group?.oomKills() ?? 0);
    this.#weigh(container, track, record.cpu);
    if (members.length > 1) sandbox.diskStale = track.isLookStale = true;
    const restMs = this.#disks.isBelowFloor(sandbox) ? track.diskTookMs : Number.POSITIVE_INFINITY;
    if (sandbox.diskStale && Date.now() >= Math.min(track.diskDueAtMs, track.diskMeasuredAtMs + 2 * restMs)) {
      inBackground(this.#log, unmeasured, () => this.measureDisk(sandbox));
    }
    if (!isFlooded) this.#considerHoldings(sandbox, container, members);
    if (sampling) this.#sample(record.id, track.usage);
    const facts = {
      enforced: { ...this.#limits, storage: this.#isStorageLimited(container) },
      processes: members.length,
      processesMax: this.#config.sandboxPidsMax,
      descriptors: track.descriptors,
      descriptorsMax: this.#descriptorsMax,
    };
    const excess = excessOf(sandbox, facts);
    if (excess && members.length > 1) this.#endCommands(sandbox, container, excess);
  }

  #isStorageLimited({ writableLayer }: Container): boolean {
    return this.#storages.volumeOf(writableLayer)?.limits ?? false;
  }

  /** When CPU is short, sandboxes that have long used much yield to those that have not. */
  #weigh({ group }: Container, track: Track, cpus: number): void {
    if (!group || track.isBusy === track.isWeighedAsBusy) return;
    try {
      group.weigh(cpus, track.isBusy);
      track.isWeighedAsBusy = track.isBusy;
    } catch (error) {
      this.#log.debug({ err: error }, "the cgroup of a sandbox is gone");
    }
  }

  /** Takes a thorough look at sandboxes that run or recently ran commands, and at once when one may be over its memory limit. */
  #considerHoldings(sandbox: LiveSandbox, container: Container, members: readonly number[]): void {
    const track = this.#track(container);
    const mayBeOver = !this.#limits.memory && memoryExcess(sandbox, track.usage.memoryBytes) !== undefined;
    const isUrgent = mayBeOver || (track.endedForMemory && members.length === 1);
    if (isUrgent || (track.isLookStale && Date.now() >= track.lookDueAtMs)) {
      inBackground(this.#log, unmeasured, () => this.#lookThoroughly(sandbox, container, members, isUrgent));
    }
  }

  async #lookThoroughly(sandbox: LiveSandbox, container: Container, members: readonly number[], urgent: boolean): Promise<void> {
    const track = this.#track(container);
    if (track.isEnding(members)) return;
    const memory = !this.#limits.memory;
    const { endings } = track;
    const holdings = await this.#holdings.look({ track, container, members, memory }, urgent);
    // The commands that it saw may have been ended meanwhile.
    if (!holdings || sandbox.container !== container || track.endings !== endings) return;
    if (members.length === 1) track.isLookStale = false;
    // What the kernel counts in the layer includes unlinked files.
    sandbox.unlisted = this.#isStorageLimited(container) ? { bytes: holdings.mountedBytes, files: 0 } : holdings.unlisted;
    const excess = memory ? memoryExcess(sandbox, track.usage.memoryBytes) : undefined;
    if (excess && members.length > 1) {
      track.endedForMemory = true;
      this.#endCommands(sandbox, container, excess);
    } else if (members.length === 1 && (!memory || excess !== undefined || track.endedForMemory)) await this.#freeLeftovers(sandbox, container, track);
  }

  /**
   * Restarts the container when its ended commands left so much in memory that the next one may not fit; the leftovers go
   * with the container's namespaces. Call it only while no command runs, since that command's memory would be counted, too.
   */
  async #freeLeftovers(sandbox: LiveSandbox, container: Container, track: Track): Promise<void> {
    const share = track.endedForMemory ? cloggedShare : fullShare;
    track.endedForMemory = false;
    const keeps = (): number => (this.#limits.memory ? (container.group?.usage().memoryBytes ?? 0) : track.sharedBytes);
    if (!keepsMoreThan(share, sandbox, keeps())) return;
    // What the kernel keeps only to be quick, such as the names of files, is no leftover.
    await container.group?.reclaim();
    const bytes = keeps();
    if (!keepsMoreThan(share, sandbox, bytes) || sandbox.activities.size > 0) return;
    this.#log.warn({ event: "memory_left", sandbox: sandbox.record.id, bytes }, "a sandbox is restarted to free the memory its commands left behind");
    signal(container.initPid, "SIGKILL", container.pidNamespace);
  }

  #writerOf(sandbox: LiveSandbox, spaces: ReadonlyMap<string, number[]>): Writer {
    const { container } = sandbox;
    const { diskMeasuredAtMs, lookedAtMs } = container ? this.#track(container) : new Track();
    const isActive = container !== undefined && (spaces.get(container.pidNamespace)?.length ?? 0) > 1;
    const measuredAtMs = Math.min(diskMeasuredAtMs, lookedAtMs);
    // A sandbox created since this process started begins empty, whether or not it has been measured.
    const isNew = measuredAtMs === 0 && sandbox.record.created_at_ms >= this.#startedAtMs;
    return { use: storedUse(sandbox), measuredAtMs: isNew ? sandbox.record.created_at_ms : measuredAtMs, isActive };
  }

  #isFlooded(members: readonly number[]): boolean {
    return !this.#limits.pids && members.length > this.#config.sandboxPidsMax;
  }

  /** The most open files of a sandbox to examine; more would take too long. */
  get #descriptorsMax(): number {
    return 2 * this.#config.sandboxNofile;
  }

  #endCommands(sandbox: LiveSandbox, container: Container, reason: string): void {
    const { pidNamespace, initPid } = container;
    this.#log.warn({ event: "limit_exceeded", sandbox: sandbox.record.id, reason }, "a sandbox exceeded a limit; its commands are ended");
    for (const activity of sandbox.activities) activity.killFor(reason);
    const track = this.#track(container);
    track.ended(killAll(pidNamespace, initPid));
    sandbox.diskStale = true;
    // These went with the commands. Later commands must not be ended for them.
    sandbox.unlisted = noFiles;
    track.descriptors = 0;
  }

  #sample(sandboxId: string, usage: Usage): void {
    const sample = { at_ms: Date.now(), cpu_percent: usage.cpuPercent, memory_mb: Math.round((usage.memoryBytes / 1024 ** 2) * 100) / 100 };
    this.#store.putSample(sandboxId, sample).catch((err) => this.#log.error({ err }, "a usage sample could not be stored"));
  }

  async #sweep(): Promise<void> {
    const now = Date.now();
    await this.#store.log.tidy(now - 7 * day);
    await this.#store.expireSamples(now - day);
  }

  /** The track of one run of a container; a restarted container gets a new one. */
  #track(container: Container): Track {
    const track = this.#tracks.get(container) ?? new Track();
    this.#tracks.set(container, track);
    return track;
  }
}
