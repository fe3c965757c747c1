/** Parses the /proc files that describe memory. */
import { parseMounts } from "../../../shared/util/mounts.ts";

const kernels = /^(proc|sysfs|devpts|mqueue|cgroup2?|devtmpfs)$/;

/** Sizes by name, in bytes, from `status`, `smaps_rollup` and similar files with lines like `Name:   123 kB`. */
export function sizesOf(text: string): ReadonlyMap<string, number> {
  return new Map([...text.matchAll(/^(\w+):\s+(\d+) kB$/gm)].map(([, name, kib]) => [name as string, Number(kib) * 1024]));
}

/** Resident memory of a process, from its `status`. Shared pages count in full. */
export function residentBytes(status: ReadonlyMap<string, number>): number {
  return ["RssAnon", "RssShmem", "VmSwap", "VmPTE"].reduce((sum, name) => sum + (status.get(name) ?? 0), 0);
}

/** Mount points from `mountinfo` where a process can write, other than its root. Device and kernel file systems are left out. */
export function writableMounts(mountinfo: string): string[] {
  return parseMounts(mountinfo).flatMap(({ point, type, options }) => (options.includes("rw") && point !== "/" && !kernels.test(type) ? [point] : []));
}

/** One mapping of a process. Only `smaps` tells its pages. */
export interface Mapping {
  readonly length: number;
  readonly offset: number;
  /** Device number as in `stat`. */
  readonly device: number;
  readonly inode: number;
  readonly name: string;
  readonly isDeleted: boolean;
  readonly pssBytes: number;
  readonly anonymousBytes: number;
}

const head = /^([0-9a-f]+)-([0-9a-f]+) \S{4} ([0-9a-f]+) ([0-9a-f]+):([0-9a-f]+) (\d+) *(.*)$/;
const deleted = " (deleted)";

/** The mappings of files and shared memory, from `maps` or `smaps`. */
export function mappingsOf(text: string): Mapping[] {
  const mappings: (Mapping & { pssBytes: number; anonymousBytes: number })[] = [];
  let current: (typeof mappings)[number] | undefined;
  for (const line of text.split("\n")) {
    const match = head.exec(line);
    if (match) {
      const [, start = "", end = "", offset = "", major = "", minor = "", inode = "", name = ""] = match;
      current = {
        length: Number.parseInt(end, 16) - Number.parseInt(start, 16),
        offset: Number.parseInt(offset, 16),
        device: deviceOf(Number.parseInt(major, 16), Number.parseInt(minor, 16)),
        inode: Number(inode),
        name,
        isDeleted: name.endsWith(deleted),
        pssBytes: 0,
        anonymousBytes: 0,
      };
      // Mappings without any file are covered by the sums of the whole process.
      if (name.startsWith("/")) mappings.push(current);
    } else if (current && line.startsWith("Pss:")) current.pssBytes = kib(line);
    else if (current && line.startsWith("Anonymous:")) current.anonymousBytes = kib(line);
  }
  return mappings;
}

/** Whether the kernel itself created the file behind a mapping: memfd, shared anonymous memory, System V segments. */
export const isMemoryObject = ({ name, isDeleted }: Mapping): boolean => isDeleted && /^\/(memfd:|dev\/zero |SYSV[0-9a-f]{8} |anon_hugepage )/.test(name);

/** glibc's makedev, for device numbers as in `stat`. */
const deviceOf = (major: number, minor: number): number => (minor & 0xff) + ((major & 0xfff) << 8) + (minor >> 8) * 0x100000;

const kib = (line: string): number => Number.parseInt(line.slice(line.indexOf(":") + 1), 10) * 1024;
