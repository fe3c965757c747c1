/** What this host can do, as `probeHost` has found it out. */
import type { HostCheck } from "../../../shared/bus/heartbeat.ts";
import type { CpuGroups } from "../container/cpu-groups.ts";

export interface Host {
  readonly runtime: "crun" | "runc";
  /** Where crun keeps a folder for each of the containers that Podman has it run. */
  readonly crunDir: string;
  readonly initBinary: string;
  /** Keeps the processes of a terminal together; undefined where it is not installed. */
  readonly reaperBinary: string | undefined;
  /** Value of podman's `--network` for sandboxes with outbound access. */
  readonly network: string;
  readonly networkFilter: "nft" | "routes";
  /** Path of the list of system calls for sandboxes. */
  readonly seccompProfile: string;
  /**
   * What keeps memory that processes of a sandbox share from filling the machine: bounds of ours in its IPC namespace, the
   * memory limit of its control group, or that there is none.
   */
  readonly ipc: "bounded" | "limited" | "closed";
  readonly controlGroups: "v1" | "v2";
  readonly pageBytes: number;
  /** Which limits the kernel enforces for us. */
  readonly limits: { readonly memory: boolean; readonly cpu: boolean; readonly pids: boolean; readonly storage: boolean };
  /** Groups of ours that limit CPU where Podman cannot; undefined where it can, or nobody can. */
  readonly cpuGroups: CpuGroups | undefined;
  readonly nofileMax: number;
  readonly nprocShared: number;
  readonly checks: readonly HostCheck[];
}

/** A host that cannot run sandboxes at all; the message says what is missing. */
export class HostUnfit extends Error {
  override name = "HostUnfit";
}
