/** What this host can do, found out once at the start by trying it, and asked nowhere else. */
import { accessSync, constants, existsSync, readdirSync, readFileSync } from "node:fs";
import { release } from "node:os";
import { dirname, join } from "node:path";
import type { HostCheck } from "../../shared/bus/messages.ts";
import type { Config } from "../../shared/config.ts";
import { sandboxDefaults } from "../../shared/schemas/sandboxes.ts";
import { CpuGroups } from "./container/cpu-groups.ts";
import { ipcBounds } from "./container/isolation.ts";
import { writeSeccompProfile } from "./container/seccomp.ts";
import { nftRules } from "./network/network.ts";
import { hostUserId } from "./process/proc.ts";
import { run } from "./process/run.ts";

const probeTimeoutMs = 60_000;
/** There where control groups of version 2 are the only ones. */
const cgroupV2Mark = "/sys/fs/cgroup/cgroup.controllers";
/**
 * Processes that all sandboxes of a worker may have together where there is no pids controller. A fork bomb makes
 * this many before it is noticed; several thousand hold up a small machine for many seconds. What the worker runs
 * beside them counts as well: a live session takes four, two of them outside of its sandbox.
 */
const commandProcesses = 1_760;
/** What a sandbox takes without a command: its first process, its monitor, its network, and one to spare. */
const restingProcesses = 4;

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

/** @throws {HostUnfit} */
export async function probeHost(config: Config): Promise<Host> {
  // All at once: none of them takes long, but together they are most of the time that a worker takes to start.
  const [podman, { runtime, runtimeVersion }, storage, network, networkFilter, [pageBytes, canBoundIpc]] = await Promise.all([
    version("podman"),
    ociRuntime(),
    hasStorageQuota(config),
    outboundNetwork(),
    filterKind(),
    sizeOfPage().then(async (bytes) => [bytes, await hasIpcBounds(bytes)] as const),
  ]);
  if (!podman) throw new HostUnfit("podman is not installed");
  const initBinary = ["/usr/libexec/podman/catatonit", "/usr/bin/catatonit", "/usr/lib/podman/catatonit"].find((path) => existsSync(path));
  if (!initBinary) throw new HostUnfit("catatonit is not installed");
  const reaperBinary = ["/usr/bin/tini-static"].find((path) => existsSync(path));
  const controllers = delegatedControllers();
  const limits = {
    memory: controllers.includes("memory"),
    cpu: controllers.includes("cpu"),
    pids: controllers.includes("pids"),
    storage,
  };
  const ipc = canBoundIpc ? "bounded" : limits.memory ? "limited" : "closed";
  const seccompProfile = writeSeccompProfile(join(config.dataDir, "worker"), ipc !== "closed");
  if (!seccompProfile) throw new HostUnfit(`there is no list of system calls for this architecture (${process.arch})`);
  const crunDir = join(dirname(config.runtimeDir), "crun");
  const host = {
    runtime,
    crunDir,
    initBinary,
    reaperBinary,
    network,
    networkFilter,
    seccompProfile,
    ipc,
    controlGroups: existsSync(cgroupV2Mark) ? "v2" : "v1",
    pageBytes,
    limits,
    cpuGroups: limits.cpu ? undefined : CpuGroups.open(),
    nofileMax: hardLimit("Max open files"),
    nprocShared: commandProcesses + restingProcesses * config.sandboxesMax,
  } as const;
  return { ...host, checks: describe(host, { podman, runtimeVersion, driver: storageDriver(config) }) };
}

async function version(program: string): Promise<string | undefined> {
  const result = await run(program, ["--version"], { timeoutMs: probeTimeoutMs });
  return result.exitCode === 0 ? /\d+(\.\d+)+/.exec(result.stdout)?.[0] : undefined;
}

/** @throws {HostUnfit} */
async function ociRuntime(): Promise<{ runtime: Host["runtime"]; runtimeVersion: string }> {
  for (const runtime of ["crun", "runc"] as const) {
    const runtimeVersion = await version(runtime);
    if (runtimeVersion) return { runtime, runtimeVersion };
  }
  throw new HostUnfit("neither crun nor runc is installed");
}

/** Controllers of cgroup v2 that this user may hand on to containers; none on v1 and hybrid hosts. */
function delegatedControllers(): string[] {
  try {
    const own =
      readFileSync("/proc/self/cgroup", "utf8")
        .split("\n")
        .find((line) => line.startsWith("0::"))
        ?.slice(3)
        .trim() ?? "";
    if (!existsSync(cgroupV2Mark)) return [];
    // The slice of this user is the highest group that is ours; its controllers are what a container can get.
    const steps = own.split("/").filter(Boolean);
    for (let length = 1; length <= steps.length; length++) {
      const dir = join("/sys/fs/cgroup", ...steps.slice(0, length));
      if (isWritable(join(dir, "cgroup.procs"))) return readFileSync(join(dir, "cgroup.controllers"), "utf8").trim().split(/\s+/);
    }
  } catch {
    // No cgroup v2: nothing is delegated.
  }
  return userManagerControllers();
}

/** A worker outside a login session still gets its containers' groups from the user's systemd manager. */
function userManagerControllers(): string[] {
  try {
    const uid = hostUserId();
    return readFileSync(`/sys/fs/cgroup/user.slice/user-${uid}.slice/user@${uid}.service/cgroup.controllers`, "utf8").trim().split(/\s+/);
  } catch {
    return [];
  }
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

async function outboundNetwork(): Promise<string> {
  if (await version("slirp4netns")) return "slirp4netns:enable_ipv6=false,allow_host_loopback=false";
  if (await version("pasta")) return "pasta:--ipv4-only,--no-map-gw";
  throw new HostUnfit("neither slirp4netns nor pasta (passt) is installed");
}

/** Whether nftables works in a network namespace of ours. */
async function filterKind(): Promise<"nft" | "routes"> {
  const rules = nftRules(["192.0.2.1"], "used");
  const result = await run("unshare", ["--net", "--", "nft", "-f", "-"], { timeoutMs: probeTimeoutMs, input: rules });
  return result.exitCode === 0 ? "nft" : "routes";
}

/** Since Linux 6.9 root of a user namespace may set the bounds of its own IPC namespaces. */
async function hasIpcBounds(pageBytes: number): Promise<boolean> {
  const bounds = Object.entries(ipcBounds(sandboxDefaults.memoryMiB, pageBytes)).flatMap(([name, value]) => [`/proc/sys/${name.replaceAll(".", "/")}`, value]);
  const script = 'while [ $# -gt 0 ]; do echo "$2" > "$1" || exit 1; shift 2; done';
  const result = await run("unshare", ["--ipc", "--", "/bin/sh", "-c", script, "sh", ...bounds], { timeoutMs: probeTimeoutMs });
  return result.exitCode === 0;
}

/** @throws {HostUnfit} */
async function sizeOfPage(): Promise<number> {
  const result = await run("getconf", ["PAGESIZE"], { timeoutMs: probeTimeoutMs });
  if (result.exitCode !== 0) throw new HostUnfit("getconf does not tell the size of a page of memory");
  return Number(result.stdout);
}

/** Podman can bound a container's layer only on XFS with project quotas that this user may set. */
async function hasStorageQuota(config: Config): Promise<boolean> {
  const result = await run("findmnt", ["--noheadings", "--output", "FSTYPE,OPTIONS", "--target", config.storageDir], { timeoutMs: probeTimeoutMs });
  if (!config.defaultImageId || !/^xfs\s.*\b(prjquota|pquota)\b/.test(result.stdout)) return false;
  const name = `sandgate-probe-${process.pid}`;
  const made = await run("podman", ["create", "--pull", "never", "--name", name, "--storage-opt", "size=1G", config.defaultImageId, "true"], {
    timeoutMs: probeTimeoutMs,
  });
  await run("podman", ["rm", "--force", "--ignore", name], { timeoutMs: probeTimeoutMs });
  return made.exitCode === 0;
}

/** Podman has folders named after its driver; `podman info`, which would tell as well, takes half a second. */
function storageDriver({ storageDir }: Config): string {
  const dir = join(storageDir, "storage");
  const folders = existsSync(dir) ? readdirSync(dir) : [];
  return folders.flatMap((name) => /^(.+)-layers$/.exec(name)?.[1] ?? [])[0] ?? "unknown";
}

function hardLimit(name: string): number {
  const line =
    readFileSync("/proc/self/limits", "utf8")
      .split("\n")
      .find((entry) => entry.startsWith(name)) ?? "";
  const hard = line.slice(name.length).trim().split(/\s+/)[1];
  return hard === undefined || hard === "unlimited" ? Number.MAX_SAFE_INTEGER : Number(hard);
}

function sharedMemory(ipc: Host["ipc"]): HostCheck {
  const name = "shared_memory";
  if (ipc === "bounded") return { name, value: "bounded in each sandbox", ok: true };
  if (ipc === "limited") return { name, value: "within the memory limit", ok: true };
  return { name, value: "closed (SysV and POSIX queues)", ok: false, note: "Linux before 6.9 lets nobody but root bound it" };
}

function describe(host: Omit<Host, "checks">, found: { podman: string; runtimeVersion: string; driver: string }): HostCheck[] {
  const limit = (name: string, enforced: boolean, otherwise: string): HostCheck =>
    enforced
      ? { name, value: "enforced by the kernel", ok: true }
      : { name, value: otherwise, ok: false, note: "this host gives an unprivileged user no such limit" };
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
    { name: "storage_driver", value: found.driver, ok: found.driver === "overlay" },
    { name: "network", value: host.network.split(":")[0] ?? "", ok: true },
    { name: "network_filter", value: host.networkFilter, ok: true },
    { name: "system_calls", value: "Sandgate's list", ok: true },
    sharedMemory(host.ipc),
    limit("memory_limit", host.limits.memory, "watched: commands are ended when a sandbox is over its size"),
    limit("cpu_limit", host.limits.cpu || host.cpuGroups !== undefined, "not enforced: sandboxes have a lower priority"),
    limit("pids_limit", host.limits.pids, `watched; at most ${host.nprocShared} processes in all sandboxes`),
    limit("storage_limit", host.limits.storage, "watched: commands are ended when a sandbox is over its size"),
  ];
}
