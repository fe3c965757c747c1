/**
 * One control group of ours for each sandbox, on hosts where Podman has none to give. The kernel limits CPU, memory and processes
 * in it, and divides the CPU fairly when there is too little: a program gains nothing by using many processes or sessions.
 */
import { existsSync, mkdirSync, readdirSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { attempt } from "../../../shared/util/attempt.ts";
import { type Controller, distinctFolders, type GroupFolders, groupFoldersOf } from "../../../shared/util/control-groups.ts";
import { hostUserId, monitorOf, pidNamespaceOf, threadsOf } from "../process/proc.ts";
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

const probed: GroupLimits = { cpus: 1, memoryMiB: 64, processes: 64 };

export class ControlGroups {
  readonly #version: GroupFolders["version"];
  /** The worker's own folder in each hierarchy. */
  readonly #folders: Partial<Record<Controller, string>>;
  /** The first processes of sandboxes. While one lives, the group stays, even if no process is in it. */
  readonly #first = new Map<string, FirstProcess>();

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

  /**
   * Creates the group for a sandbox, whose commands then enter it themselves, and moves its processes there. Its network and
   * its monitor only share its CPU. The kernel refuses to move another user's process, which the first one may be; it only waits.
   */
  join(name: string, container: Members, limits: GroupLimits): SandboxGroup {
    const { initPid, pids, networkPids } = container;
    this.#first.set(name, container);
    this.sweep();
    const group = make(this.#version, this.#folders, name, limits);
    for (const entrance of group.entrances) moveThreads(entrance, pids);
    const { cpu } = this.#folders;
    if (this.#version === "v1" && cpu) moveThreads(join(cpu, name, "tasks"), [...monitorOf(initPid), ...networkPids]);
    return group;
  }

  /** Removes the groups of sandboxes that are gone, as soon as all of their processes are. */
  sweep(): void {
    for (const [name, { initPid, pidNamespace }] of this.#first) if (pidNamespaceOf(initPid) !== pidNamespace) this.#first.delete(name);
    for (const dir of this.#distinct()) for (const name of foldersIn(dir)) if (!this.#first.has(name)) removeIfEmpty(join(dir, name));
  }

  /** Removes what it can, for the end of this worker. */
  close(): void {
    this.#first.clear();
    this.sweep();
    for (const dir of this.#distinct()) removeIfEmpty(dir);
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

/** Whether a group can be made, limited and removed in these hierarchies. */
function works({ version, folders }: GroupFolders): boolean {
  const name = `probe-${process.pid}`;
  const made = attempt(() => {
    make(version, folders, name, probed);
    for (const dir of distinctFolders(folders)) rmdirSync(join(dir, name));
    return true;
  });
  return made ?? false;
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

/** The process may be gone, or belong to another user. */
const moveTo = (entrance: string, pid: number): void => attempt(() => writeFileSync(entrance, String(pid)));

/**
 * Moves processes thread by thread, which waits for nobody: moving a whole process has the kernel wait for all CPUs. Looks again
 * for threads that others have made before they were moved.
 */
function moveThreads(entrance: string, pids: readonly number[]): void {
  const moved = new Set<number>();
  for (let before = -1; moved.size > before; ) {
    before = moved.size;
    for (const thread of pids.flatMap(threadsOf)) {
      if (!moved.has(thread)) moveTo(entrance, thread);
      moved.add(thread);
    }
  }
}
