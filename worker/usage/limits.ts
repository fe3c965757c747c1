/** Whether a sandbox uses more than it may, where the kernel does not see to that. */
import type { Host } from "../runtime/host/host.ts";
import { type LiveSandbox, storedUse } from "../sandboxes/registry.ts";

const MiB = 1024 ** 2;
const GB = 1024 ** 3;
/** A sandbox may have one file for so many bytes of its storage: what mke2fs takes for usual. */
const bytesPerFile = 16 * 1024;

export interface LimitFacts {
  /** Limits that the kernel enforces; they are not looked at here. */
  readonly enforced: Host["limits"];
  readonly processes: number;
  readonly processesMax: number;
  /** Open files of all processes together. */
  readonly descriptors: number;
  readonly descriptorsMax: number;
}

/** The most files that a sandbox may have. */
export const filesMaxOf = ({ record }: Pick<LiveSandbox, "record">): number => (record.storage * GB) / bytesPerFile;

/** The reason why the commands of the sandbox must end, or undefined. Memory is another matter: see `memoryExcess`. */
export function excessOf(sandbox: LiveSandbox, facts: LimitFacts): string | undefined {
  const { record } = sandbox;
  // First, because a fork bomb takes memory as well.
  if (!facts.enforced.pids && facts.processes > facts.processesMax) return `too many processes: the sandbox had more than its ${facts.processesMax}`;
  if (facts.descriptors > facts.descriptorsMax) return `too many open files: the processes of the sandbox had more than ${facts.descriptorsMax} together`;
  const { bytes, files } = storedUse(sandbox);
  // A quota of the kernel's knows nothing of files that lost their name but sees them all the same.
  if (!facts.enforced.storage && bytes > record.storage * GB) return `out of storage: the sandbox wrote more than its ${record.storage} GB`;
  if (files > filesMaxOf(sandbox)) return `out of storage: the sandbox has more files than the ${filesMaxOf(sandbox)} that its ${record.storage} GB allow`;
  return undefined;
}

/** The reason why the commands of the sandbox must end, or undefined. */
export function memoryExcess({ record }: Pick<LiveSandbox, "record">, bytes: number): string | undefined {
  return bytes > record.memory * MiB ? `out of memory: the sandbox used more than its ${record.memory} MiB` : undefined;
}

/** Whether what a sandbox keeps in memory without any command is more than this share of what it may have. */
export const keepsMoreThan = (share: number, { record }: Pick<LiveSandbox, "record">, bytes: number): boolean => bytes > record.memory * MiB * share;
