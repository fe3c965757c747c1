/** The probed facts about the host, as shown to operators. */
import { release } from "node:os";
import type { HostCheck } from "../../../shared/bus/heartbeat.ts";
import type { Host } from "./host.ts";
import type { StrongProbe } from "./strong.ts";

function sharedMemory(ipc: Host["ipc"]): HostCheck {
  const name = "shared_memory";
  if (ipc === "bounded") return { name, value: "bounded in each sandbox", ok: true };
  if (ipc === "limited") return { name, value: "within the memory limit", ok: true };
  return { name, value: "closed (SysV and POSIX queues)", ok: false, note: "Linux before 6.9 lets nobody but root bound it" };
}

/** Not having it is a lack only where every sandbox must be strong. */
function strongIsolation(strong: StrongProbe, mustBeStrong: boolean): HostCheck {
  const name = "strong_isolation";
  return strong.works ? { name, value: strong.found, ok: true } : { name, value: "not available", ok: !mustBeStrong, note: strong.found };
}

interface Found {
  readonly podman: string;
  readonly runtimeVersion: string;
  readonly driver: string;
  readonly strong: StrongProbe;
  readonly mustBeStrong: boolean;
  /** Whether the operator wants no control groups of our own. */
  readonly areGroupsOff: boolean;
}

const storageNote = "needs the volume and its helper";

export function describe(host: Omit<Host, "checks">, found: Found): HostCheck[] {
  const groupsNote = `no control groups: ${found.areGroupsOff ? "turned off by SANDGATE_CONTROL_GROUPS" : "start as root, or allow sudo without a password"}`;
  const limit = (name: string, enforced: boolean, otherwise: string, note = groupsNote): HostCheck =>
    enforced ? { name, value: "enforced by the kernel", ok: true } : { name, value: otherwise, ok: false, note };
  return [
    { name: "kernel", value: release(), ok: true },
    { name: "podman", value: found.podman, ok: true },
    {
      name: "runtime",
      value: `${host.runtime} ${found.runtimeVersion}`,
      ok: host.runtime === "crun",
      ...(host.runtime === "crun" ? {} : { note: "crun starts commands much faster" }),
    },
    host.reaperBinary
      ? { name: "terminals", value: "with job control", ok: true }
      : { name: "terminals", value: "without Ctrl-Z", ok: false, note: "tini is not installed" },
    host.execServer
      ? { name: "exec_server", value: "in each sandbox", ok: true }
      : { name: "exec_server", value: "not available", ok: false, note: "commands start more slowly" },
    { name: "storage_driver", value: found.driver, ok: found.driver === "overlay" },
    { name: "network", value: host.network.split(":")[0] ?? "", ok: true },
    { name: "network_filter", value: host.networkFilter, ok: true },
    { name: "system_calls", value: "Sandgate's list", ok: true },
    strongIsolation(found.strong, found.mustBeStrong),
    sharedMemory(host.ipc),
    limit("memory_limit", host.limits.memory, "watched: commands are ended when a sandbox is over its size"),
    limit("cpu_limit", host.limits.cpu, "not enforced: sandboxes have a lower priority"),
    limit("pids_limit", host.limits.pids, `watched; at most ${host.nprocShared} processes in all sandboxes`),
    limit("storage_limit", host.limits.storage, "watched: commands are ended when a sandbox is over its size", storageNote),
  ];
}
