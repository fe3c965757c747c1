/** Finds out what this host can do, once at the start, by trying it. */
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Config } from "../../../shared/config.ts";
import { ControlGroups } from "../container/control-groups.ts";
import { Scopes } from "../container/scopes.ts";
import { writeSeccompProfiles } from "../container/seccomp.ts";
import { mountNetworksFolder } from "../network/folder.ts";
import { cgroupVersion, delegatedControllers } from "./cgroups.ts";
import { describe } from "./checks.ts";
import { mountCrunReadOnly, takesReadyFilters } from "./crun.ts";
import { type Host, HostUnfit } from "./host.ts";
import { filterKind, hardLimit, hasIpcBounds } from "./kernel.ts";
import { ociRuntime, outboundNetwork, podmanVersion, sizeOfPage } from "./programs.ts";
import { hasStorageLimits, storageDriver } from "./storage.ts";
import { probeStrong, strongRuntime } from "./strong.ts";

/**
 * The most processes of all sandboxes of a worker together where there is no pids controller. A fork bomb reaches this number
 * before it is noticed; several thousand would block a small machine for many seconds. The worker's own programs for sandboxes
 * count as well: a live session takes four processes, two of them outside its sandbox.
 */
const commandProcesses = 1_760;
/** Processes of a sandbox without a command: its first process, its monitor, its network, and one to spare. */
const restingProcesses = 4;

/** @throws {HostUnfit} */
export async function probeHost(config: Config, workerId: string): Promise<Host> {
  // All at once: none takes long, but in sequence they would be most of the worker's start time.
  const [podman, { runtime, runtimeVersion }, network, networkFilter, [pageBytes, canBoundIpc]] = await Promise.all([
    podmanVersion(),
    ociRuntime(),
    outboundNetwork(),
    filterKind(),
    sizeOfPage().then(async (bytes) => [bytes, await hasIpcBounds(bytes)] as const),
  ]);
  if (!podman) throw new HostUnfit("podman is not installed");
  const initBinary = ["/usr/libexec/podman/catatonit", "/usr/bin/catatonit", "/usr/lib/podman/catatonit"].find((path) => existsSync(path));
  if (!initBinary) throw new HostUnfit("catatonit is not installed");
  const reaperBinary = ["/usr/bin/tini-static"].find((path) => existsSync(path));
  const execServer = config.execServer && existsSync(config.execServer) ? config.execServer : undefined;
  const controllers = delegatedControllers();
  const groups = config.controlGroups === "none" ? undefined : ControlGroups.open(workerId);
  const delegated = { memory: controllers.includes("memory"), cpu: controllers.includes("cpu"), pids: controllers.includes("pids") };
  const limits = { ...(groups?.limited ?? delegated), storage: hasStorageLimits(config) };
  const ipc = canBoundIpc ? "bounded" : limits.memory ? "limited" : "closed";
  const seccompProfiles = writeSeccompProfiles(join(config.dataDir, "worker"), ipc !== "closed");
  if (!seccompProfiles) throw new HostUnfit(`there is no list of system calls for this architecture (${process.arch})`);
  const podmanRunDir = dirname(config.runtimeDir);
  const scopes = groups ? undefined : await Scopes.open();
  const strong = await probeStrong(config, initBinary, scopes !== undefined || (groups !== undefined && limits.memory && limits.cpu && limits.pids));
  // The networks of others are not Podman's.
  if (strong.works) mountNetworksFolder(podmanRunDir);
  if (runtime === "crun") mountCrunReadOnly();
  const host = {
    runtime,
    podmanRunDir,
    crunDir: join(podmanRunDir, "crun"),
    strongDir: join(podmanRunDir, strongRuntime),
    initBinary,
    reaperBinary,
    execServer,
    network,
    networkFilter,
    seccompProfiles,
    takesReadyFilters: runtime === "crun" && takesReadyFilters(),
    ipc,
    controlGroups: cgroupVersion(),
    pageBytes,
    limits,
    groups,
    scopes,
    hasStrong: strong.works,
    nofileMax: hardLimit("Max open files"),
    nprocShared: commandProcesses + restingProcesses * config.sandboxesMax,
  } as const;
  const [mustBeStrong, areGroupsOff] = [config.isolation === "strong", config.controlGroups === "none"];
  return { ...host, checks: describe(host, { podman, runtimeVersion, driver: storageDriver(config), strong, mustBeStrong, areGroupsOff }) };
}
