/**
 * CPU groups (cgroup v1) of sandboxes, one each, on hosts where Podman can set no CPU limit: as much CPU as the sandbox
 * may have, and an equal part of it for each where there is too little. A program cannot get more by being many processes or
 * sessions: without such a group, autogroups give every session as much as the worker has, whatever its priority.
 */
import { mkdirSync, readdirSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { cpuGroupOf } from "../../../shared/util/cpu-group.ts";
import { commandLineOf, hostUserId, parentOf } from "../process/proc.ts";

const periodMicros = 100_000;
/** The weight of one CPU, which is also what the kernel gives a group by default. */
const sharesPerCpu = 1_024;
/** A sandbox that has long used much has only this part of its weight beside those that have not. */
const busyPart = 1 / 16;

export class CpuGroups {
  readonly #dir: string;

  private constructor(dir: string) {
    this.#dir = dir;
  }

  /** Undefined where the set-up could not make a group for this account, or it does not work. */
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
   * The group of a sandbox, for its commands. Its network, its first process and the monitor of its container are put there;
   * the group is in use as long as they live. The kernel lets us move no process of another user, such as the first one may be.
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

/** The monitor of a container; a process whose monitor has been killed is the child of one that is none of ours. */
function monitorOf(initPid: number): number[] {
  const parent = parentOf(initPid);
  return parent !== undefined && commandLineOf(parent)[0]?.endsWith("conmon") ? [parent] : [];
}

/** Sets what the sandbox of a group has of the CPU while others want it as well. */
export function weigh(group: string, cpus: number, isBusy: boolean): void {
  writeFileSync(join(group, "cpu.shares"), String(Math.round(cpus * sharesPerCpu * (isBusy ? busyPart : 1))));
}

function moveTo(group: string, pid: number): void {
  try {
    writeFileSync(join(group, "cgroup.procs"), String(pid));
  } catch {
    // It has gone, or belongs to another user.
  }
}
