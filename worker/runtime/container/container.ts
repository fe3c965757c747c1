/** What running commands in a container needs to know of it. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { SandgateError } from "../../../shared/errors.ts";
import type { Host } from "../host/host.ts";
import { commandLineOf, pidNamespaceOf, processIds, startTimeOf } from "../process/proc.ts";
import { run } from "../process/run.ts";
import { reaperPath } from "./first-process.ts";

const stateTimeoutMs = 10_000;

/** A running container, as far as running commands in it needs it. */
export interface Container {
  readonly id: string;
  /** Host pid of the waiting process. */
  readonly initPid: number;
  readonly pidNamespace: string;
  /** The writable layer on the host; undefined where the storage driver has none. */
  readonly writableLayer: string | undefined;
  readonly process: ProcessTemplate;
  readonly cgroup: string | undefined;
  /** The folder of the CPU group of ours for its commands; undefined where Podman limits them, or nobody does. */
  readonly cpuGroup: string | undefined;
  /** Host pids of the programs that are its network. */
  readonly networkPids: readonly number[];
  /** Whether it has the reaper for terminals; not one that an earlier version of the worker made. */
  readonly hasReaper: boolean;
}

/** The `process` part of an OCI runtime bundle: user, capabilities, limits and so on. */
interface ProcessTemplate {
  readonly env?: readonly string[];
  readonly cwd: string;
  readonly [field: string]: unknown;
}

interface RuntimeState {
  readonly status: string;
  readonly pid: number;
  readonly bundle: string;
}

interface Bundle {
  readonly process: ProcessTemplate;
  readonly root: { readonly path: string };
  readonly mounts?: readonly { readonly destination: string }[];
  readonly linux?: { readonly namespaces?: readonly { readonly type: string; readonly path?: string }[] };
}

/** Looks a running container up. @throws {ContainerNotRunning} */
export async function inspectContainer({ runtime, crunDir }: Pick<Host, "runtime" | "crunDir">, containerId: string): Promise<Container> {
  const state = (runtime === "crun" && recordOfCrun(crunDir, containerId)) || (await stateOf(runtime, containerId));
  const pidNamespace = state.status === "running" ? pidNamespaceOf(state.pid) : undefined;
  if (!pidNamespace) throw notRunning(`the container is ${state.status}`);
  const bundle = JSON.parse(readFileSync(join(state.bundle, "config.json"), "utf8")) as Bundle;
  return {
    id: containerId,
    initPid: state.pid,
    pidNamespace,
    writableLayer: bundle.root.path.endsWith("/merged") ? join(bundle.root.path, "../diff") : undefined,
    process: bundle.process,
    cgroup: cgroupOf(state.pid),
    cpuGroup: undefined,
    networkPids: networkPids(bundle),
    hasReaper: (bundle.mounts ?? []).some(({ destination }) => destination === reaperPath),
  };
}

/** slirp4netns or pasta, which know the namespace by its path. */
function networkPids({ linux }: Bundle): number[] {
  const path = linux?.namespaces?.find(({ type }) => type === "network")?.path;
  return path ? processIds().filter((pid) => commandLineOf(pid).includes(path)) : [];
}

/** @throws {ContainerNotRunning} when the runtime has no such container */
async function stateOf(runtime: string, containerId: string): Promise<RuntimeState> {
  const result = await run(runtime, ["state", containerId], { timeoutMs: stateTimeoutMs });
  if (result.exitCode !== 0) throw notRunning(result.stderr);
  return JSON.parse(result.stdout) as RuntimeState;
}

/** What crun would say of a container that runs, without the time that a program takes; undefined when it has to be asked. */
function recordOfCrun(crunDir: string, containerId: string): RuntimeState | undefined {
  try {
    const record = JSON.parse(readFileSync(join(crunDir, containerId, "status"), "utf8")) as { pid: number; bundle: string; "process-start-time": number };
    // Another process may have the number of one that has ended.
    const runs = record.pid > 0 && startTimeOf(record.pid) === record["process-start-time"] && !existsSync(join(crunDir, containerId, "exec.fifo"));
    return runs ? { status: "running", pid: record.pid, bundle: record.bundle } : undefined;
  } catch {
    return undefined;
  }
}

/** A container whose processes are there, whether they run or stand still; undefined when they are gone. */
export async function findContainer(runtime: string, containerId: string): Promise<Pick<Container, "id" | "cgroup" | "pidNamespace"> | undefined> {
  const { pid } = await stateOf(runtime, containerId).catch((error: unknown) => {
    if (error instanceof ContainerNotRunning) return { pid: 0 };
    throw error;
  });
  const pidNamespace = pid > 0 ? pidNamespaceOf(pid) : undefined;
  return pidNamespace ? { id: containerId, cgroup: cgroupOf(pid), pidNamespace } : undefined;
}

/** The container is gone though its record says that it runs. */
export class ContainerNotRunning extends SandgateError {}

export const notRunning = (detail: string): ContainerNotRunning =>
  new ContainerNotRunning("unavailable", "the sandbox stopped and is started again", { cause: new Error(detail.trim()) });

/** The container's cgroup v2 directory, where the host gives it one of its own. */
function cgroupOf(pid: number): string | undefined {
  try {
    const line = readFileSync(`/proc/${pid}/cgroup`, "utf8")
      .split("\n")
      .find((entry) => entry.startsWith("0::"));
    const path = line?.slice(3).trim();
    return path && path !== "/" ? join("/sys/fs/cgroup", path) : undefined;
  } catch {
    return undefined;
  }
}
