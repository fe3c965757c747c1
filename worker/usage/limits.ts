/** Checks the sandbox limits that the kernel does not enforce. */
import type { Host } from "../runtime/host/host.ts";
import { type LiveSandbox, storedUse } from "../sandboxes/registry.ts";

const MiB = 1024 ** 2;
const GB = 1024 ** 3;
/** A sandbox may have one file for this many bytes of its storage, the usual ratio of mke2fs. */
const bytesPerFile = 16 * 1024;

export interface LimitFacts {
  /** Limits that the kernel enforces; they are not checked here. */
  readonly enforced: Host["limits"];
  readonly processes: number;
  readonly processesMax: number;
  /** Open files of all processes together. */
  readonly descriptors: number;
  readonly descriptorsMax: number;
}

/** The most files that a sandbox may have. */
export const filesMaxOf = ({ record }: Pick<LiveSandbox, "record">): number => (record.storage * GB) / bytesPerFile;

/**
 * What all sandboxes may write. Files that they have count as well, since all of them can be replaced before the file system
 * gives up the earlier ones.
 */
export function promisedBytes(sandboxes: { all(): Iterable<Pick<LiveSandbox, "record">> }): number {
  return [...sandboxes.all()].reduce((sum, { record }) => sum + record.storage * GB, 0);
}

/** The reason why the sandbox's commands must end, or undefined. Memory is checked separately by `memoryExcess`. */
export function excessOf(sandbox: LiveSandbox, facts: LimitFacts): string | undefined {
  const { record } = sandbox;
  // First, because a fork bomb also takes memory.
  if (!facts.enforced.pids && facts.processes > facts.processesMax) return `too many processes: the sandbox had more than its ${facts.processesMax}`;
  if (facts.descriptors > facts.descriptorsMax) return `too many open files: the processes of the sandbox had more than ${facts.descriptorsMax} together`;
  // The kernel limits the sandbox's own files, also unlinked ones, and what their names take; but not files of the host that are mounted.
  const { bytes, files } = facts.enforced.storage ? { bytes: sandbox.unlisted.bytes, files: 0 } : storedUse(sandbox);
  if (bytes > record.storage * GB) return `out of storage: the sandbox wrote more than its ${record.storage} GB`;
  if (files > filesMaxOf(sandbox)) return `out of storage: the sandbox has more files than the ${filesMaxOf(sandbox)} that its ${record.storage} GB allow`;
  return undefined;
}

/** The reason why the sandbox's commands must end, or undefined. */
export function memoryExcess({ record }: Pick<LiveSandbox, "record">, bytes: number): string | undefined {
  return bytes > record.memory * MiB ? `out of memory: the sandbox used more than its ${record.memory} MiB` : undefined;
}

/** Whether a sandbox without commands keeps more than this share of its memory limit in use. */
export const keepsMoreThan = (share: number, { record }: Pick<LiveSandbox, "record">, bytes: number): boolean => bytes > record.memory * MiB * share;
