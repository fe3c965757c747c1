/**
 * One control group of ours for each sandbox, on hosts where Podman has none to give. The kernel limits CPU, memory and processes
 * in it, and divides the CPU fairly when there is too little: a program gains nothing by using many processes or sessions.
 */
import { existsSync, mkdirSync, readdirSync, rmdirSync, writeFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { arch } from "node:process";
import { attempt } from "../../../shared/util/attempt.ts";
import { type Controller, distinctFolders, type GroupFolders, groupFoldersOf } from "../../../shared/util/control-groups.ts";
import { until } from "../../../shared/waiting.ts";
import { hostUserId, monitorOf, pidNamespaceOf, threadsOf, userOf } from "../process/proc.ts";
import { programFailure, run } from "../process/run.ts";
import { type GroupLimits, GroupV1, GroupV2, type SandboxGroup } from "./groups.ts";

/** What the kernel limits by these groups. */
export interface Limited {
  readonly memory: boolean;
  readonly cpu: boolean;
  readonly pids: boolean;
}

interface FirstProcess {
  readonly initPid: number;
  readonly pidNamespace: string;
}

interface Members extends FirstProcess {
  readonly pids: readonly number[];
  readonly networkPids: readonly number[];
}

const moveTimeoutMs = 10_000;
const closeMsMax = 3_000;
const closePollMs = 20;
const probed: GroupLimits = { cpus: 1, memoryMiB: 64, processes: 64 };

export class ControlGroups {
  readonly #version: GroupFolders["version"];
  /** The worker's own folder in each hierarchy. */
  readonly #folders: Partial<Record<Controller, string>>;
  /** The first processes of sandboxes. While one lives, the group stays, even if no process is in it. */
  readonly #first = new Map<string, FirstProcess>();
  /** Of sandboxes whose processes are about to be there. */
  readonly #ahead = new Map<string, SandboxGroup>();

  private constructor({ version, folders }: GroupFolders) {
    this.#version = version;
    this.#folders = folders;
  }

  /** Opens this worker's groups; undefined when the set-up has given none to this account, or none works. */
  static open(workerId: string): ControlGroups | undefined {
    const found = groupFoldersOf(hostUserId());
    if (!found) return undefined;
    const usable = Object.entries(found.folders).filter(([controller, folder]) => works({ ...found, folders: { [controller]: folder } }));
    if (usable.length === 0) return undefined;
    const groups = new ControlGroups({ ...found, folders: Object.fromEntries(usable.map(([controller, folder]) => [controller, join(folder, workerId)])) });
    groups.#takeUp();
    return groups;
  }

  get limited(): Limited {
    const { memory, cpu, pids } = this.#folders;
    return { memory: memory !== undefined, cpu: cpu !== undefined, pids: pids !== undefined };
  }

  /** Creates the group of a sandbox before it has processes. It goes with the next sweep after `forget`, unless they have joined it. */
  prepare(name: string, limits: GroupLimits): void {
    this.#ahead.set(name, make(this.#version, this.#folders, name, limits));
  }

  forget(name: string): void {
    this.#ahead.delete(name);
  }

  /**
   * Creates the group for a sandbox, whose commands then enter it themselves, and moves its processes there: also the first one,
   * which only waits, but does what a debugger in the sandbox has it do. Its network and its monitor only share its CPU.
   *
   * @throws {SandgateError} `internal_error`, `unavailable` when a process could not be moved
   */
  async join(name: string, container: Members, limits: GroupLimits): Promise<SandboxGroup> {
    const { initPid, pids, networkPids } = container;
    this.#first.set(name, container);
    this.sweep();
    const group = this.#ahead.get(name) ?? make(this.#version, this.#folders, name, limits);
    const enter = (pid: number): Promise<void> => {
      const uid = this.#version === "v1" ? otherUserOf(pid) : undefined;
      return uid === undefined ? moveThreads(pid, group.entrances) : moveOthers(pid, uid, group.entrances);
    };
    await Promise.all([...pids.map(enter), this.share(name, [...monitorOf(initPid), ...networkPids])]);
    return group;
  }

  /** Has processes that are no part of a sandbox share its CPU. */
  async share(name: string, pids: readonly number[]): Promise<void> {
    const { cpu } = this.#folders;
    if (this.#version === "v1" && cpu) await Promise.all(pids.map((pid) => moveThreads(pid, [join(cpu, name, "tasks")])));
  }

  /** Removes the groups of sandboxes that are gone, as soon as all of their processes are. */
  sweep(): void {
    for (const [name, { initPid, pidNamespace }] of this.#first) if (pidNamespaceOf(initPid) !== pidNamespace) this.#first.delete(name);
    for (const [dir, name] of this.#left()) removeIfEmpty(join(dir, name));
  }

  /** Removes what it can, for the end of this worker. */
  async close(): Promise<void> {
    this.#ahead.clear();
    const areGone = (): boolean => {
      this.sweep();
      return this.#left().length === 0;
    };
    // A sandbox's monitor outlives it for a moment, since it has Podman clean up.
    await until(areGone, { timeoutMs: closeMsMax, pollMs: closePollMs });
    for (const dir of this.#distinct()) removeIfEmpty(dir);
  }

  /** The folders of sandboxes that are gone. */
  #left(): [dir: string, name: string][] {
    const isGone = (name: string): boolean => !this.#first.has(name) && !this.#ahead.has(name);
    return this.#distinct().flatMap((dir) =>
      foldersIn(dir)
        .filter(isGone)
        .map((name): [string, string] => [dir, name]),
    );
  }

  /** A worker that was killed may have left sandboxes frozen. */
  #takeUp(): void {
    for (const dir of this.#distinct()) mkdirSync(dir, { recursive: true });
    if (this.#version === "v2") enableBelow(this.#distinct()[0] ?? "");
    const { freezer } = this.#folders;
    for (const name of foldersIn(freezer ?? "")) groupAt(this.#version, this.#folders, name).freezer?.thaw();
  }

  #distinct(): string[] {
    return distinctFolders(this.#folders);
  }
}

/** Whether a group can be made, limited and removed in these hierarchies. What is not used is not left there. */
function works({ version, folders }: GroupFolders): boolean {
  const name = `probe-${process.pid}`;
  const found = distinctFolders(folders);
  const absent = found.filter((dir) => !existsSync(dir));
  const isLimited = attempt(() => make(version, folders, name, probed)) !== undefined;
  const isRemoved = found.map((dir) => attempt(() => rmdirSync(join(dir, name)) ?? true)).every(Boolean);
  for (const dir of absent) removeIfEmpty(dir);
  return isLimited && isRemoved;
}

function make(version: GroupFolders["version"], folders: GroupFolders["folders"], name: string, limits: GroupLimits): SandboxGroup {
  for (const dir of distinctFolders(folders)) mkdirSync(join(dir, name), { recursive: true });
  const group = groupAt(version, folders, name);
  group.limit(limits);
  return group;
}

function groupAt(version: GroupFolders["version"], folders: GroupFolders["folders"], name: string): GroupV1 | GroupV2 {
  if (version === "v2") return new GroupV2(join(Object.values(folders)[0] ?? "", name), true);
  return new GroupV1(Object.fromEntries(Object.entries(folders).map(([controller, dir]) => [controller, join(dir, name)])));
}

function enableBelow(dir: string): void {
  for (const controller of ["memory", "cpu", "pids"]) writeFileSync(join(dir, "cgroup.subtree_control"), `+${controller}`);
}

function foldersIn(dir: string): string[] {
  if (!existsSync(dir)) return [];
  return readdirSync(dir, { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? [entry.name] : []));
}

/** Something may run in it, or it is gone. */
const removeIfEmpty = (dir: string): void => attempt(() => rmdirSync(dir));

/**
 * Moves a process thread by thread: moving a whole one has the kernel wait for all CPUs longer. Looks again for threads that were
 * made before their makers were moved.
 */
async function moveThreads(pid: number, entrances: readonly string[]): Promise<void> {
  const moved = new Set<number>();
  for (let before = -1; moved.size > before; ) {
    before = moved.size;
    for (const thread of threadsOf(pid)) {
      if (moved.has(thread)) continue;
      moved.add(thread);
      // It may be gone.
      for (const entrance of entrances) await writeFile(entrance, String(thread)).catch(() => {});
    }
  }
}

/** The user of a process that is not ours; undefined also when it is gone. Its folder says so only once it runs a program of its own. */
function otherUserOf(pid: number): number | undefined {
  const uid = userOf(pid);
  return uid === process.getuid?.() ? undefined : uid;
}

/** The number of capset(2). */
const capset = arch === "arm64" ? "91" : "126";

/** As `moveThreads`. Arguments: that number, the user, the process, the entrances. The script keeps the right to open the files as another user. */
const moveScript = String.raw`
my ($capset, $uid, $pid, @entrances) = (shift() + 0, shift() + 0, @ARGV);
my ($version, $any_file) = (pack("LL", 0x20080522, 0), pack("L6", 2, 2, 0, 0, 0, 0));
$> = $uid;
$> == $uid && syscall($capset, $version, $any_file) == 0 or die "user $uid: $!\n";
my %moved;
for (my $is_new = 1; $is_new;) {
  $is_new = 0;
  opendir(my $tasks, "/proc/$pid/task") or last;
  for my $task (grep { /^\d/ && !$moved{$_}++ } readdir $tasks) {
    $is_new = 1;
    for my $entrance (@entrances) {
      my $file;
      next if open($file, ">", $entrance) && syswrite($file, $task);
      die "$entrance: $!\n" if -e "/proc/$pid/task/$task";
    }
  }
}`;

/**
 * Moves a process of another user. In cgroup v1 the kernel lets only its own user do that, and nobody but ours may open the files:
 * a program that is both does it.
 */
async function moveOthers(pid: number, uid: number, entrances: readonly string[]): Promise<void> {
  const result = await run("perl", ["-e", moveScript, capset, String(uid), String(pid), ...entrances], { timeoutMs: moveTimeoutMs });
  if (result.exitCode !== 0) throw programFailure("the sandbox could not be limited", result);
}
