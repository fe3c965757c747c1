/**
 * One CPU group (cgroup v1) for each sandbox, on hosts where Podman cannot limit CPU. It limits the sandbox's CPU, and divides
 * the CPU fairly when there is too little. A program gains nothing by using many processes or sessions. Without such groups,
 * autogroups give every session as much as the worker has, whatever its priority.
 */
import { mkdirSync, readdirSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { cpuGroupOf } from "../../../shared/util/cpu-group.ts";
import { commandLineOf, hostUserId, parentOf } from "../process/proc.ts";

const periodMicros = 100_000;
/** The weight of one CPU, which is also the kernel's default for a group. */
const sharesPerCpu = 1_024;
/** A sandbox that has long used much CPU has only this part of its weight, compared with the others. */
const busyPart = 1 / 16;

export class CpuGroups {
  readonly #dir: string;

  private constructor(dir: string) {
    this.#dir = dir;
  }

  /** Undefined when the set-up could not create a group for this account, or when it does not work. */
  static open(): CpuGroups | undefined {
    const dir = cpuGroupOf(hostUserId());
    if (dir === undefined) return undefined;
    const groups = new CpuGroups(dir);
    try {
      groups.#make(`probe-${process.pid}`, 1);
      groups.sweep();
      return groups;
    } catch {
      return undefined;
    }
  }

  /**
   * Creates the group for a sandbox's commands. The sandbox's network, first process and container monitor are moved there and
   * keep the group in use. The kernel refuses to move another user's process, which the first one may be.
   */
  join(name: string, { initPid, networkPids }: { readonly initPid: number; readonly networkPids: readonly number[] }, cpus: number): string {
    this.sweep();
    const group = this.#make(name, cpus);
    for (const pid of [...monitorOf(initPid), initPid, ...networkPids]) moveTo(group, pid);
    return group;
  }

  /** Removes groups in which nothing runs. */
  sweep(): void {
    for (const entry of readdirSync(this.#dir, { withFileTypes: true })) if (entry.isDirectory()) this.#removeIfEmpty(entry.name);
  }

  #removeIfEmpty(name: string): void {
    try {
      rmdirSync(join(this.#dir, name));
    } catch {
      // Something runs in it, or another worker was faster.
    }
  }

  #make(name: string, cpus: number): string {
    try {
      return this.#makeNow(name, cpus);
    } catch {
      return this.#makeNow(name, cpus); // Another worker of this account may have found it empty.
    }
  }

  #makeNow(name: string, cpus: number): string {
    const group = join(this.#dir, name);
    mkdirSync(group, { recursive: true });
    writeFileSync(join(group, "cpu.cfs_period_us"), String(periodMicros));
    writeFileSync(join(group, "cpu.cfs_quota_us"), String(Math.round(cpus * periodMicros)));
    weigh(group, cpus, false);
    return group;
  }
}

/** The monitor of a container, unless it was killed and the process now has another parent. */
function monitorOf(initPid: number): number[] {
  const parent = parentOf(initPid);
  return parent !== undefined && commandLineOf(parent)[0]?.endsWith("conmon") ? [parent] : [];
}

/** Sets the group's share of the CPU when others compete for it. */
export function weigh(group: string, cpus: number, isBusy: boolean): void {
  writeFileSync(join(group, "cpu.shares"), String(Math.round(cpus * sharesPerCpu * (isBusy ? busyPart : 1))));
}

function moveTo(group: string, pid: number): void {
  try {
    writeFileSync(join(group, "cgroup.procs"), String(pid));
  } catch {
    // It is gone, or belongs to another user.
  }
}
