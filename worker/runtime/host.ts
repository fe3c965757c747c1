/** What this host can do, found out once at the start by trying it, and asked nowhere else. */
import { accessSync, constants, existsSync, readdirSync, readFileSync } from "node:fs";
import { release } from "node:os";
import { dirname, join } from "node:path";
import type { Config } from "../../shared/config.ts";
import type { HostCheck } from "../../shared/schemas/messages.ts";
import { nftRules } from "./network.ts";
import { run } from "./run.ts";
import { writeSeccompProfile } from "./seccomp.ts";

const probeTimeoutMs = 60_000;
/**
 * Processes that all sandboxes of a worker may have together where there is no pids controller. A fork bomb makes
 * this many before it is noticed; several thousand hold up a small machine for many seconds. What the worker runs
 * beside them counts as well: a live session takes four, two of them outside of its sandbox.
 */
const nprocShared = 2_560;

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
  /** Path of the list of system calls for sandboxes; Podman's built-in one where undefined. */
  readonly seccompProfile: string | undefined;
  /** Which limits the kernel enforces for us. */
  readonly limits: { readonly memory: boolean; readonly cpu: boolean; readonly pids: boolean; readonly storage: boolean };
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
  const [podman, { runtime, runtimeVersion }, storage, network, networkFilter] = await Promise.all([
    version("podman"),
    ociRuntime(),
    hasStorageQuota(config),
    outboundNetwork(),
    filterKind(),
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
  const seccompProfile = writeSeccompProfile(join(config.dataDir, "worker"));
  const crunDir = join(dirname(config.runtimeDir), "crun");
  const host = {
    runtime,
    crunDir,
    initBinary,
    reaperBinary,
    network,
    networkFilter,
    seccompProfile,
    limits,
    nofileMax: hardLimit("Max open files"),
    nprocShared,
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
    if (!existsSync("/sys/fs/cgroup/cgroup.controllers")) return [];
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
    const uid = readFileSync("/proc/self/uid_map", "utf8").trim().split(/\s+/)[1];
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

/** Podman can bound a container's layer only on XFS with project quotas that this user may set. */
async function hasStorageQuota(config: Config): Promise<boolean> {
  const result = await run("findmnt", ["--noheadings", "--output", "FSTYPE,OPTIONS", "--target", config.storageDir], { timeoutMs: probeTimeoutMs });
  if (!/^xfs\s.*\b(prjquota|pquota)\b/.test(result.stdout)) return false;
  const name = `sandgate-probe-${process.pid}`;
  const made = await run("podman", ["create", "--pull", "never", "--name", name, "--storage-opt", "size=1G", config.defaultImage, "true"], {
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
    host.seccompProfile
      ? { name: "system_calls", value: "podman's list, less namespaces and mounts", ok: true }
      : { name: "system_calls", value: "podman's built-in list", ok: false, note: "sandboxes can make user namespaces; seccomp.json of podman is missing" },
    limit("memory_limit", host.limits.memory, "watched: commands are ended when a sandbox is over its size"),
    limit("cpu_limit", host.limits.cpu, "not enforced"),
    limit("pids_limit", host.limits.pids, `watched; at most ${host.nprocShared} processes in all sandboxes`),
    limit("storage_limit", host.limits.storage, "watched: commands are ended when a sandbox is over its size"),
  ];
}
