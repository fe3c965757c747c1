/**
 * What a sandbox's processes hold beyond their own counters: shared pages, files in memory, and unlinked files on disk.
 * Reading it all takes milliseconds or longer, so it runs on its own thread.
 */
import { readdirSync, readFileSync, statfsSync, statSync } from "node:fs";
import { attempt } from "../../shared/util/attempt.ts";
import { inMemory, isInMemory } from "../../shared/util/mounts.ts";
import type { DiskUse } from "../runtime/filesystem/disk.ts";
import { isMemoryObject, type Mapping, mappingsOf, residentBytes, sizesOf, writableMounts } from "../runtime/process/proc-text.ts";

const blockBytes = 512;
/** Approximate kernel memory for each file of a memory file system, however small. */
const inodeBytes = 1024;

export interface HoldingsRequest {
  /** Host pids of the sandbox's processes, the init process first. */
  readonly members: readonly number[];
  readonly initPid: number;
  /** The writable layer, which identifies the device of the sandbox's files. */
  readonly layer: string | undefined;
  /** The most descriptors to examine in total; a sandbox with more is not examined further. */
  readonly descriptorsMax: number;
  /** Whether to measure memory, which takes the longest. */
  readonly memory: boolean;
}

export interface Holdings {
  /** Private and shared process pages, each shared page counted once, including swap and page tables. */
  readonly privateBytes: number;
  /** memfd, memory file systems and shared mappings. Excludes System V segments, which belong to no process. */
  readonly sharedBytes: number;
  /** Resident memory as the quick look would add it up, read at the same time. */
  readonly residentBytes: number;
  /** Files on disk that a walk of the writable layer misses: unlinked ones, and those on other mounts. */
  readonly unlisted: DiskUse;
  /** The part of these bytes that is on other mounts. */
  readonly mountedBytes: number;
  readonly descriptors: number;
}

/** Unlinked files that a sandbox's processes have open, each counted once. */
class OpenFiles {
  readonly #memoryDevices: ReadonlySet<number>;
  readonly #isTmpfs = new Map<number, boolean>();
  readonly #seen = new Set<string>();
  /** By inode number only: which device a mapping reports depends on the kernel. */
  readonly inodes = new Set<number>();
  memoryBytes = 0;
  onDisk = { bytes: 0, files: 0 };
  descriptors = 0;

  /** @param memoryDevices file systems that are counted as a whole. */
  constructor(memoryDevices: ReadonlySet<number>) {
    this.#memoryDevices = memoryDevices;
  }

  /** @returns whether there may be more to examine. */
  add(pid: number, descriptorsMax: number): boolean {
    for (const name of namesIn(`/proc/${pid}/fd`)) {
      if (++this.descriptors > descriptorsMax) return false;
      this.#look(`/proc/${pid}/fd/${name}`);
    }
    return true;
  }

  #look(path: string): void {
    const file = statSync(path, { throwIfNoEntry: false });
    if (!file) return;
    if (file.nlink > 0 || !file.isFile() || this.#memoryDevices.has(file.dev)) return;
    const key = `${file.dev} ${file.ino}`;
    if (this.#seen.has(key)) return;
    this.#seen.add(key);
    this.inodes.add(file.ino);
    const bytes = file.blocks * blockBytes;
    if (this.#liesInMemory(path, file.dev)) this.memoryBytes += bytes + inodeBytes;
    else this.onDisk = { bytes: this.onDisk.bytes + bytes, files: this.onDisk.files + 1 };
  }

  #liesInMemory(path: string, dev: number): boolean {
    let known = this.#isTmpfs.get(dev);
    if (known === undefined) {
      known = attempt(() => isInMemory(path)) ?? false;
      this.#isTmpfs.set(dev, known);
    }
    return known;
  }
}

/** Reads everything now. Processes that end meanwhile are left out. */
export function holdingsOf({ members, initPid, layer, descriptorsMax, memory }: HoldingsRequest): Holdings {
  const mounts = mountsOf(initPid);
  const isMemory = memoryObjectsBeside(devicesOf([`/proc/${initPid}/root`, layer]));
  const files = new OpenFiles(mounts.devices);
  for (const pid of members) if (!files.add(pid, descriptorsMax)) break;
  const pages = { privateBytes: 0, residentBytes: 0, mappedBytes: 0 };
  const unnamed = new Map<number, { bytes: number; inMemory: boolean }>();
  for (const pid of members) {
    const mapped = mappingsWithoutDescriptor(pid, files.inodes, mounts.devices);
    for (const mapping of mapped) {
      const bytes = Math.max(unnamed.get(mapping.inode)?.bytes ?? 0, mapping.offset + mapping.length);
      unnamed.set(mapping.inode, { bytes, inMemory: isMemory(mapping) });
    }
    if (memory) addPages(pages, pid, (mapping) => isMemory(mapping) && !isCounted(mapping, files.inodes, mounts.devices));
  }
  const mappedOnly = [...unnamed.values()];
  const deleted = mappedOnly.filter(({ inMemory }) => !inMemory);
  return {
    privateBytes: pages.privateBytes,
    residentBytes: pages.residentBytes,
    sharedBytes: mounts.memoryBytes + files.memoryBytes + pages.mappedBytes,
    // For a file that is mapped but not open, only the mapping tells the size.
    unlisted: {
      bytes: mounts.diskBytes + files.onDisk.bytes + deleted.reduce((sum, { bytes }) => sum + bytes, 0),
      files: files.onDisk.files + deleted.length,
    },
    mountedBytes: mounts.diskBytes,
    descriptors: files.descriptors,
  };
}

/** What the container's mounts other than its root hold, and the devices of the memory file systems, which are counted as a whole. */
function mountsOf(initPid: number): { memoryBytes: number; diskBytes: number; devices: ReadonlySet<number> } {
  const held = { memoryBytes: 0, diskBytes: 0, devices: new Set<number>() };
  for (const mountPoint of writableMounts(read(`/proc/${initPid}/mountinfo`))) {
    const path = `/proc/${initPid}/root${mountPoint}`;
    const found = attempt(() => ({ file: statSync(path), system: statfsSync(path) }));
    if (!found) continue;
    const { file, system } = found;
    const isMemory = system.type === inMemory;
    // A single file bind-mounted from the host, such as /etc/hosts.
    if (file.isFile()) held[isMemory ? "memoryBytes" : "diskBytes"] += file.blocks * blockBytes;
    else if (isMemory && file.isDirectory() && !held.devices.has(file.dev)) {
      held.devices.add(file.dev);
      held.memoryBytes += (system.blocks - system.bfree) * system.bsize + (system.files - system.ffree) * inodeBytes;
    }
  }
  return held;
}

/** Mapped files that are unlinked and that no process has open. */
function mappingsWithoutDescriptor(pid: number, open: ReadonlySet<number>, memoryDevices: ReadonlySet<number>): Mapping[] {
  const mappings = mappingsOf(read(`/proc/${pid}/maps`));
  return mappings.filter(({ isDeleted, inode, device }) => isDeleted && inode > 0 && !open.has(inode) && !memoryDevices.has(device));
}

/** A file on disk can have the name that the kernel gives to memory objects, but not their device. */
function memoryObjectsBeside(disks: ReadonlySet<number>): (mapping: Mapping) => boolean {
  return (mapping) => isMemoryObject(mapping) && !disks.has(mapping.device);
}

function devicesOf(paths: readonly (string | undefined)[]): ReadonlySet<number> {
  return new Set(paths.flatMap((path) => attempt(() => statSync(path ?? "").dev) ?? []));
}

/** Whether the whole file behind a mapping has already been counted. */
function isCounted(mapping: Mapping, open: ReadonlySet<number>, memoryDevices: ReadonlySet<number>): boolean {
  return open.has(mapping.inode) || memoryDevices.has(mapping.device) || mapping.name.startsWith("/SYSV");
}

function addPages(pages: { privateBytes: number; residentBytes: number; mappedBytes: number }, pid: number, counts: (mapping: Mapping) => boolean): void {
  const rollup = sizesOf(read(`/proc/${pid}/smaps_rollup`));
  const status = sizesOf(read(`/proc/${pid}/status`));
  pages.privateBytes += (rollup.get("Pss_Anon") ?? status.get("RssAnon") ?? 0) + (rollup.get("SwapPss") ?? 0) + (status.get("VmPTE") ?? 0);
  pages.residentBytes += residentBytes(status);
  if ((status.get("RssShmem") ?? 0) === 0) return;
  for (const mapping of mappingsOf(read(`/proc/${pid}/smaps`))) {
    if (counts(mapping)) pages.mappedBytes += Math.max(0, mapping.pssBytes - mapping.anonymousBytes);
  }
}

const namesIn = (dir: string): string[] => attempt(() => readdirSync(dir)) ?? [];
const read = (path: string): string => attempt(() => readFileSync(path, "latin1")) ?? "";
