/** Watches what sandboxes and the host use: samples for `status`, and limits that the kernel does not enforce. */
import type { Config } from "../../shared/config.ts";
import { every, inBackground } from "../../shared/util/background.ts";
import type { Logger } from "../../shared/util/log.ts";
import { type Container, isThere } from "../runtime/container/container.ts";
import { endAll } from "../runtime/container/strong.ts";
import type { DiskUse } from "../runtime/filesystem/disk.ts";
import type { Host } from "../runtime/host/host.ts";
import { killAll } from "../runtime/process/proc.ts";
import type { Storages } from "../runtime/storage/storages.ts";
import { type LiveSandbox, type Sandboxes, storedUse } from "../sandboxes/registry.ts";
import type { Store } from "../store/store.ts";
import type { Writer } from "./disk-floor.ts";
import type { Disks } from "./disks.ts";
import { hostMemory, loadPerCpu } from "./host-use.ts";
import { LayerSizes } from "./layer-sizes.ts";
import { Leftovers } from "./leftovers.ts";
import { excessOf, promisedBytes } from "./limits.ts";
import { readCounters } from "./measure.ts";
import { Spaces } from "./spaces.ts";
import { noUse, Track, Tracks, type Usage } from "./track.ts";

const MiB = 1024 ** 2;
const tickMs = 500;
/** How often to check whether memory drops so fast that the next tick would be too late. */
const hurryMs = 100;
/** If this much of the host's memory is gone since the last tick, the next tick runs at once. */
const hurryBytes = 128 * MiB;
/** Growth of shared memory that is normal noise on any machine. */
const sharedNoiseBytes = MiB;
const sampleMs = 10_000;
const sweepMs = 600_000;
const day = 86_400_000;
const noFiles: DiskUse = { bytes: 0, files: 0 };
const unmeasured = "usage could not be measured";

interface Parts {
  readonly config: Config;
  readonly disks: Disks;
  readonly host: Host;
  readonly storages: Storages;
  readonly sandboxes: Sandboxes;
  readonly store: Store;
  readonly log: Logger;
  readonly onLost: (sandbox: LiveSandbox) => void;
  /** Told of every sandbox that runs. */
  readonly onRunning: (sandbox: LiveSandbox) => void;
  /** The process in a sandbox that starts its commands. Like the first process, it does not count as one of them. */
  readonly serverIn: (container: Container) => number | undefined;
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
  readonly #onRunning: (sandbox: LiveSandbox) => void;
  readonly #serverIn: (container: Container) => number | undefined;
  readonly #tracks = new Tracks();
  readonly #layers: LayerSizes;
  readonly #leftovers: Leftovers;
  readonly #timers: NodeJS.Timeout[] = [];
  readonly #disks: Disks;
  readonly #storages: Storages;
  readonly #startedAtMs = Date.now();
  #shared = 0;
  #sampledAtMs = Date.now();
  #ticking = false;

  constructor({ config, disks, host, storages, sandboxes, store, log, onLost, onRunning, serverIn }: Parts) {
    this.#config = config;
    this.#limits = host.limits;
    this.#sandboxes = sandboxes;
    this.#store = store;
    this.#log = log;
    this.#onLost = onLost;
    this.#onRunning = onRunning;
    this.#serverIn = serverIn;
    this.#disks = disks;
    this.#storages = storages;
    this.#layers = new LayerSizes(this.#tracks, storages);
    this.#leftovers = new Leftovers({
      ...{ tracks: this.#tracks, limits: host.limits, storages, log, descriptorsMax: this.#descriptorsMax },
      endCommands: (sandbox, container, reason) => this.#endCommands(sandbox, container, reason),
    });
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
    await this.#leftovers.stop();
  }

  /** The usage at the last look, at most half a second old; a container that no look has seen yet gets one now. */
  current(sandbox: LiveSandbox): Usage {
    if (!sandbox.container) return noUse;
    const track = this.#tracks.of(sandbox.container);
    if (track.usage === noUse) this.#lookAt(sandbox, new Spaces(), false);
    return track.usage;
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
  measureDisk(sandbox: LiveSandbox): Promise<void> {
    return this.#layers.measure(sandbox);
  }

  /** Something begins to run in a sandbox, or has changed its files: what was found out about what it holds is not true any more. */
  noteActivity(sandbox: LiveSandbox): void {
    sandbox.diskStale = true;
    if (sandbox.container) this.#tracks.of(sandbox.container).noteActivity();
  }

  /** Takes a thorough look at the sandbox now. */
  async measureHoldings(sandbox: LiveSandbox): Promise<void> {
    const { container } = sandbox;
    const members = container && this.#membersOf(container, new Spaces());
    if (members && container.isolation === "standard" && !this.#isFlooded(members)) await this.#leftovers.look(sandbox, container, members, true);
  }

  /** Ticks early when memory is taken much faster than the regular ticks come, and only these keep sandboxes from having more than their size. */
  async #hurry(): Promise<void> {
    if (!this.#limits.memory && this.host.memoryFreeBytes - hostMemory().availableBytes > hurryBytes) await this.#tick();
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
    if (memory.sharedBytes > this.#shared + sharedNoiseBytes) this.#leftovers.noteSharedGrowth();
    this.#shared = memory.sharedBytes;
    const spaces = new Spaces();
    const sampling = Date.now() - this.#sampledAtMs >= sampleMs;
    if (sampling) this.#sampledAtMs = Date.now();
    // One sandbox that cannot be read must not leave the others unwatched.
    for (const sandbox of this.#sandboxes.all()) inBackground(this.#log, unmeasured, () => this.#lookAt(sandbox, spaces, sampling));
    for (const { sandbox, reason } of this.#disks.offenders([...this.#sandboxes.all()], (one) => this.#writerOf(one, spaces))) {
      if (sandbox.container) this.#endCommands(sandbox, sandbox.container, reason);
    }
  }

  /** The first process of a sandbox, and what its commands have started. */
  #membersOf(container: Container, spaces: Spaces): readonly number[] {
    const members = spaces.membersOf(container);
    const server = members.length > 1 ? this.#serverIn(container) : undefined;
    return server === undefined ? members : members.filter((pid) => pid !== server);
  }

  #lookAt(sandbox: LiveSandbox, spaces: Spaces, sampling: boolean): void {
    const { container, record } = sandbox;
    if (!container) return;
    if (!isThere(container)) return this.#onLost(sandbox);
    this.#onRunning(sandbox);
    const members = this.#membersOf(container, spaces);
    const track = this.#tracks.of(container);
    // Reading the counters of thousands of processes would give a fork bomb time to grow.
    const isFlooded = this.#isFlooded(members);
    const reading = isFlooded ? track.reading : readCounters(container, members);
    track.note(reading, members.length, record.cpu, !reading.byProcess);
    if (this.#limits.memory) track.noteOomKills(container.group?.oomKills() ?? 0);
    this.#weigh(container, track, record.cpu);
    const isActive = isAnyActive(sandbox, container, members);
    if (isActive) this.noteActivity(sandbox);
    if (this.#layers.isDue(sandbox, container, this.#disks.isBelowFloor(sandbox))) inBackground(this.#log, unmeasured, () => this.measureDisk(sandbox));
    // What a strong sandbox holds is its kernel's, where the host cannot tell one process from another; groups limit it.
    if (!isFlooded && container.isolation === "standard") this.#leftovers.consider(sandbox, container, members);
    if (sampling) this.#sample(record.id, track.usage);
    const facts = {
      enforced: { ...this.#limits, storage: this.#storages.limits(container.writableLayer) },
      processes: members.length,
      processesMax: this.#config.sandboxPidsMax,
      descriptors: track.descriptors,
      descriptorsMax: this.#descriptorsMax,
    };
    const excess = excessOf(sandbox, facts);
    if (excess && isActive) this.#endCommands(sandbox, container, excess);
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

  #writerOf(sandbox: LiveSandbox, spaces: Spaces): Writer {
    const { container } = sandbox;
    const { diskMeasuredAtMs, lookedAtMs } = container ? this.#tracks.of(container) : new Track();
    const isActive = container !== undefined && isAnyActive(sandbox, container, this.#membersOf(container, spaces));
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
    const track = this.#tracks.of(container);
    if (container.isolation === "strong") endAll(container);
    else track.ended(killAll(pidNamespace, [initPid, this.#serverIn(container)]));
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
}

/** Whether anything runs in a sandbox; in a strong one, by a call. */
const isAnyActive = ({ activities }: LiveSandbox, { isolation }: Container, members: readonly number[]): boolean =>
  isolation === "strong" ? activities.size > 0 : members.length > 1;
