/** What this host can do, as found out by `probeHost`. */
import type { HostCheck } from "../../../shared/bus/heartbeat.ts";
import type { Isolation } from "../../../shared/schemas/sandboxes.ts";
import type { ControlGroups } from "../container/control-groups.ts";
import type { Scopes } from "../container/scopes.ts";

export interface Host {
  readonly runtime: "crun" | "runc";
  /** The folder in memory of this installation's Podman. */
  readonly podmanRunDir: string;
  /** Where crun keeps a folder for each container that Podman has it run. */
  readonly crunDir: string;
  /** Where gVisor keeps files for each strong container; their names begin with its id. */
  readonly strongDir: string;
  readonly initBinary: string;
  /** Keeps the processes of a terminal together; undefined when not installed. */
  readonly reaperBinary: string | undefined;
  /** Starts commands in sandboxes; undefined where the set-up could not make it. */
  readonly execServer: string | undefined;
  /** Value of podman's `--network` for sandboxes with outbound access. */
  readonly network: string;
  readonly networkFilter: "nft" | "routes";
  /** Paths of the list of system calls for sandboxes, and of one that allows none. */
  readonly seccompProfiles: { readonly whole: string; readonly empty: string };
  /** Whether the runtime can be given the filter of system calls that it would make of the list. */
  readonly takesReadyFilters: boolean;
  /**
   * What keeps the memory shared by a sandbox's processes from filling the machine: our limits on its IPC namespace, its
   * cgroup's memory limit, or the absence of such memory.
   */
  readonly ipc: "bounded" | "limited" | "closed";
  readonly controlGroups: "v1" | "v2";
  readonly pageBytes: number;
  /** Which limits the kernel enforces. */
  readonly limits: { readonly memory: boolean; readonly cpu: boolean; readonly pids: boolean; readonly storage: boolean };
  /** Our own control groups where Podman has none to give; undefined where it has, or where we have none either. */
  readonly groups: ControlGroups | undefined;
  /** For strong sandboxes, where Podman has groups to give; undefined where they are in ours, or cannot be limited. */
  readonly scopes: Scopes | undefined;
  /** Whether it can run strong sandboxes. */
  readonly hasStrong: boolean;
  readonly nofileMax: number;
  readonly nprocShared: number;
  readonly checks: readonly HostCheck[];
}

/** What makes the groups of such sandboxes when it is not Podman. */
export const groupMaker = ({ groups, scopes }: Pick<Host, "groups" | "scopes">, isolation: Isolation): ControlGroups | Scopes | undefined =>
  groups ?? (isolation === "strong" ? scopes : undefined);

/** The host cannot run sandboxes at all; the message says what is missing. */
export class HostUnfit extends Error {
  override name = "HostUnfit";
}
