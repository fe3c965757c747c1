/** Whether a sandbox uses more than it may, where the kernel does not see to that. */
import type { Host } from "../runtime/host.ts";
import { type LiveSandbox, storedBytes } from "../sandboxes/registry.ts";
import type { Usage } from "./monitor.ts";

const MiB = 1024 ** 2;
const GB = 1024 ** 3;

export interface LimitFacts {
  /** Limits that the kernel enforces; they are not looked at here. */
  readonly enforced: Host["limits"];
  readonly pidsMax: number;
  /** Whether the host's disk is below its floor. */
  readonly hostIsFull: boolean;
}

/** The reason why the commands of the sandbox must end, or undefined. */
export function excessOf(sandbox: LiveSandbox, usage: Usage, facts: LimitFacts): string | undefined {
  const { record } = sandbox;
  // First, because a fork bomb takes memory as well.
  if (!facts.enforced.pids && usage.processes > facts.pidsMax) return `too many processes: the sandbox had more than its ${facts.pidsMax}`;
  if (!facts.enforced.memory && usage.memoryBytes > record.memory * MiB) return `out of memory: the sandbox used more than its ${record.memory} MiB`;
  if (!facts.enforced.storage && storedBytes(sandbox) > record.storage * GB) return `out of storage: the sandbox wrote more than its ${record.storage} GB`;
  if (facts.hostIsFull && sandbox.diskStale) return "out of storage: the host has too little free disk space";
  return undefined;
}
