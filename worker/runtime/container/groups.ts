/** The control group of a sandbox: what the kernel counts in it, and what it does to all of its processes at once. */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { attempt } from "../../../shared/util/attempt.ts";
import type { Controller, GroupFolders } from "../../../shared/util/control-groups.ts";
import { isWritable } from "../host/cgroups.ts";
import { MemoryStat } from "./memory-stat.ts";

/** What a sandbox may use. */
export interface GroupLimits {
  readonly cpus: number;
  readonly memoryMiB: number;
  readonly processes: number;
}

/** What the kernel counts; undefined for what it does not count on this host. */
export interface GroupUsage {
  /** Without the cache of files on disk, which the kernel takes back before it runs out. */
  readonly memoryBytes: number | undefined;
  /** The part of it that outlives processes: files in memory, System V segments and shared mappings. */
  readonly sharedBytes: number;
  readonly cpuSeconds: number | undefined;
}

/** Has the kernel stop and continue all processes of a group. */
export class Freezer {
  readonly #file: string;
  readonly #words: readonly [freeze: string, thaw: string];
  readonly isFrozen: () => boolean;

  constructor(file: string, words: readonly [freeze: string, thaw: string], isFrozen: () => boolean) {
    this.#file = file;
    this.#words = words;
    this.isFrozen = isFrozen;
  }

  freeze(): void {
    writeFileSync(this.#file, this.#words[0]);
  }

  thaw(): void {
    writeFileSync(this.#file, this.#words[1]);
  }
}

export interface SandboxGroup {
  /** The files into which a process writes 0 to enter the group; none where the OCI runtime moves it. */
  readonly entrances: readonly string[];
  readonly freezer: Freezer | undefined;
  /** Never throws: a group that is gone counts nothing. */
  usage(): GroupUsage;
  /**
   * The ids of the living processes in it: those of the sandbox, and a runtime that starts one. Undefined where the kernel only shares
   * the CPU by it. Takes one read, while a look at every process of the machine holds all calls up for milliseconds.
   */
  processes(): number[] | undefined;
  /** How often the kernel has killed a process because the group was out of memory. */
  oomKills(): number;
  /** Has the kernel give back what it only keeps to be quick: cached files and their names. */
  reclaim(): Promise<void>;
  /** Sets its share of the CPU when others compete for it. @throws when the group is gone. */
  weigh(cpus: number, isBusy: boolean): void;
}

/** The weight of one CPU: the kernel's default for a group in cgroup v1, and in v2. */
const weightPerCpu = { v1: 1_024, v2: 100 } as const;
/** A sandbox that has long used much CPU has only this part of its weight, compared with the others. */
const busyPart = 1 / 16;
const periodMicros = 100_000;
/**
 * Where the kernel can, it slows a sandbox down in this last part of its memory, before it kills a process. It waits longer the
 * larger the part is: with 5 % instead of 2 % it may take minutes to the end of a command, and its timeout comes first.
 */
const slowedShare = 0.02;

const weightOf = (version: GroupFolders["version"], cpus: number, isBusy: boolean): string =>
  String(Math.max(1, Math.round(cpus * weightPerCpu[version] * (isBusy ? busyPart : 1))));

/** A group of ours in the hierarchies of cgroup v1, one folder in each. */
export class GroupV1 implements SandboxGroup {
  readonly #folders: Partial<Record<Controller, string>>;
  readonly #stat: MemoryStat;
  readonly freezer: Freezer | undefined;

  constructor(folders: Partial<Record<Controller, string>>) {
    this.#folders = folders;
    this.#stat = new MemoryStat(() => read(folders.memory, "memory.stat"));
    const { freezer: dir } = folders;
    const file = dir && join(dir, "freezer.state");
    this.freezer = file ? new Freezer(file, ["FROZEN", "THAWED"], () => read(dir, "freezer.state").trim() === "FROZEN") : undefined;
  }

  get entrances(): string[] {
    // A single thread that moves itself waits for nobody, while "cgroup.procs" has the kernel wait some 15 ms for all CPUs.
    return [...new Set(Object.values(this.#folders))].map((folder) => join(folder, "tasks"));
  }

  limit({ cpus, memoryMiB, processes }: GroupLimits): void {
    const { memory, cpu, pids } = this.#folders;
    const bytes = String(memoryMiB * 1024 ** 2);
    if (memory) {
      writeFileSync(join(memory, "memory.limit_in_bytes"), bytes);
      // Memory and swap together, which may not be less than memory.
      const both = join(memory, "memory.memsw.limit_in_bytes");
      if (isWritable(both)) writeFileSync(both, bytes);
    }
    if (cpu) {
      writeFileSync(join(cpu, "cpu.cfs_period_us"), String(periodMicros));
      writeFileSync(join(cpu, "cpu.cfs_quota_us"), String(Math.round(cpus * periodMicros)));
      this.weigh(cpus, false);
    }
    if (pids) writeFileSync(join(pids, "pids.max"), String(processes));
  }

  usage(): GroupUsage {
    const { memory, cpuacct } = this.#folders;
    const used = numberIn(memory, "memory.usage_in_bytes");
    const stat = this.#stat.text(used);
    const shared = field(stat, "total_shmem");
    const memoryBytes = withoutCache(used, field(stat, "total_cache"), shared);
    const nanoseconds = numberIn(cpuacct, "cpuacct.usage");
    return { memoryBytes, sharedBytes: shared ?? 0, cpuSeconds: nanoseconds === undefined ? undefined : nanoseconds / 1e9 };
  }

  processes(): number[] | undefined {
    // The monitor and the network are in that for CPU as well.
    const dir = this.#folders.pids ?? this.#folders.memory;
    return dir === undefined ? undefined : processesIn(dir);
  }

  oomKills(): number {
    return field(read(this.#folders.memory, "memory.oom_control"), "oom_kill") ?? 0;
  }

  async reclaim(): Promise<void> {
    const { memory } = this.#folders;
    if (memory) await writeFile(join(memory, "memory.force_empty"), "0").catch(unlessReclaimed);
  }

  weigh(cpus: number, isBusy: boolean): void {
    if (this.#folders.cpu) writeFileSync(join(this.#folders.cpu, "cpu.shares"), weightOf("v1", cpus, isBusy));
  }
}

/** A group in cgroup v2: ours, or the one that Podman has made for the container and that this account may change. */
export class GroupV2 implements SandboxGroup {
  readonly #dir: string;
  readonly #stat: MemoryStat;
  readonly entrances: readonly string[];
  readonly freezer: Freezer | undefined;

  /** @param isOurs whether commands must enter it themselves. */
  constructor(dir: string, isOurs: boolean) {
    this.#dir = dir;
    this.#stat = new MemoryStat(() => read(dir, "memory.stat"));
    this.entrances = isOurs ? [join(dir, "cgroup.procs")] : [];
    const file = join(dir, "cgroup.freeze");
    this.freezer = isWritable(file) ? new Freezer(file, ["1", "0"], () => field(read(dir, "cgroup.events"), "frozen") === 1) : undefined;
  }

  limit({ cpus, memoryMiB, processes }: GroupLimits): void {
    const set = (name: string, value: string | number): void => writeFileSync(join(this.#dir, name), String(value));
    const bytes = memoryMiB * 1024 ** 2;
    set("memory.max", bytes);
    set("cpu.max", `${Math.round(cpus * periodMicros)} ${periodMicros}`);
    set("pids.max", processes);
    this.complete(memoryMiB);
    this.weigh(cpus, false);
  }

  /**
   * Allows no swap, of which crun with systemd allows as much again as memory, and has the kernel slow the sandbox down before it is
   * out of memory. Without effect where the kernel cannot.
   */
  complete(memoryMiB: number): void {
    const values = { "memory.swap.max": 0, "memory.high": Math.round(memoryMiB * (1 - slowedShare)) * 1024 ** 2 };
    for (const [name, value] of Object.entries(values)) if (isWritable(join(this.#dir, name))) writeFileSync(join(this.#dir, name), String(value));
  }

  usage(): GroupUsage {
    const used = numberIn(this.#dir, "memory.current");
    const stat = this.#stat.text(used);
    const shared = field(stat, "shmem");
    const micros = field(read(this.#dir, "cpu.stat"), "usage_usec");
    return {
      memoryBytes: withoutCache(used, field(stat, "file"), shared),
      sharedBytes: shared ?? 0,
      cpuSeconds: micros === undefined ? undefined : micros / 1e6,
    };
  }

  processes(): number[] {
    // A runtime puts some of them into groups below.
    const below = this.entrances.length > 0 ? [] : (attempt(() => readdirSync(this.#dir, { withFileTypes: true })) ?? []);
    const folders = below.filter((entry) => entry.isDirectory()).map(({ name }) => join(this.#dir, name));
    return [this.#dir, ...folders].flatMap(processesIn);
  }

  oomKills(): number {
    return field(read(this.#dir, "memory.events"), "oom_kill") ?? 0;
  }

  async reclaim(): Promise<void> {
    await writeFile(join(this.#dir, "memory.reclaim"), String(numberIn(this.#dir, "memory.current") ?? 0)).catch(unlessReclaimed);
  }

  weigh(cpus: number, isBusy: boolean): void {
    const file = join(this.#dir, "cpu.weight");
    if (isWritable(file)) writeFileSync(file, weightOf("v2", cpus, isBusy));
  }
}

/** The group that Podman has made for a container with this process, on a host with cgroup v2 where it has one of its own. */
export function groupOfContainer(containerId: string, initPid: number): GroupV2 | undefined {
  const path = /^0::(.+)$/m.exec(read("/proc", `${initPid}/cgroup`))?.[1];
  if (path === undefined || path === "/") return undefined;
  const parts = path.split("/");
  // Runtimes put some of its processes into groups below the container's.
  const at = parts.findIndex((part) => part.includes(containerId));
  return at < 0 ? undefined : new GroupV2(join("/sys/fs/cgroup", ...parts.slice(0, at + 1)), false);
}

/** The folder of the group of cgroup v2 in which a process itself is. */
export function processFolderOf(pid: number): string | undefined {
  const path = /^0::(\/.+)$/m.exec(read("/proc", `${pid}/cgroup`))?.[1];
  return path && join("/sys/fs/cgroup", path);
}

/** The kernel reports EAGAIN or EBUSY when it could free only a part, as it nearly always does. */
function unlessReclaimed(error: NodeJS.ErrnoException): void {
  if (!["EAGAIN", "EBUSY", "ENOENT", "EINTR"].includes(error.code ?? "")) throw error;
}

/** Memory in use, of which the kernel counts files in memory as cache, too. */
function withoutCache(used: number | undefined, cached = 0, shared = 0): number | undefined {
  return used === undefined ? undefined : Math.max(shared, used - (cached - shared));
}

/** Empty where there is no such controller, or where the group is gone. */
const read = (dir: string | undefined, name: string): string => (dir === undefined ? undefined : attempt(() => readFileSync(join(dir, name), "utf8"))) ?? "";

const processesIn = (dir: string): number[] => read(dir, "cgroup.procs").split("\n").filter(Boolean).map(Number);

function numberIn(dir: string | undefined, name: string): number | undefined {
  const text = read(dir, name);
  return text === "" ? undefined : Number(text);
}

/** The value of a field in a file of lines "NAME VALUE". */
function field(text: string, name: string): number | undefined {
  const value = new RegExp(`^${name} (\\d+)$`, "m").exec(text)?.[1];
  return value === undefined ? undefined : Number(value);
}
