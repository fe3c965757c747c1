/** What is needed to run commands in a container. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { SandgateError } from "../../../shared/errors.ts";
import type { Isolation } from "../../../shared/schemas/sandboxes.ts";
import { attempt } from "../../../shared/util/attempt.ts";
import { processIds } from "../../../shared/util/proc.ts";
import { until } from "../../../shared/waiting.ts";
import type { Host } from "../host/host.ts";
import { strongRuntime } from "../host/strong.ts";
import { rootIdOf } from "../ids/ranges.ts";
import type { ContainerSpec } from "../podman/spec.ts";
import { commandLineOf, isGone, monitorOf, pidNamespaceOf, startTimeOf } from "../process/proc.ts";
import { run } from "../process/run.ts";
import type { Copies } from "./copies.ts";
import { execServerPath, meetingPlace, reaperPath } from "./first-process.ts";
import { groupOfContainer, type SandboxGroup } from "./groups.ts";
import { ownFiles } from "./own-files.ts";
import { kernelOf, strongProcesses } from "./strong.ts";

const stateTimeoutMs = 10_000;
const endTimeoutMs = 10_000;
const networkProgram = /(^|\/)(slirp4netns|pasta(\.\w+)?)$/;
const ownPaths: readonly string[] = Object.values(ownFiles);

/** The OCI runtime that runs a container. */
export const runtimeOf = ({ runtime }: Pick<Host, "runtime">, isolation: Isolation): string => (isolation === "strong" ? strongRuntime : runtime);

/** A running container. */
export interface Container {
  readonly id: string;
  readonly isolation: Isolation;
  /** Host pid of the init process, which only waits; in a strong sandbox, of its kernel. */
  readonly initPid: number;
  /** Host pid of the process through which the worker reaches its mounts: the first, but in a copy that which waits there. */
  readonly doorPid: number;
  readonly pidNamespace: string;
  /** Host pids of what runs before any command. */
  readonly pids: readonly number[];
  /** The id that root of the container has in the worker's user namespace; the container's other ids follow it. */
  readonly firstId: number;
  /** The folder of its OCI bundle. */
  readonly bundle: string;
  /** The writable layer on the host; undefined when the storage driver has none. */
  readonly writableLayer: string | undefined;
  readonly process: ProcessTemplate;
  /** Its control group: ours, or the one that Podman has made; undefined on a host where neither can be had. */
  readonly group: SandboxGroup | undefined;
  /** Host pids of the programs that provide its network; others when these have ended. */
  networkPids: readonly number[];
  /** Whether it has the reaper for terminals; a container created by an earlier version of the worker may not. */
  readonly hasReaper: boolean;
  /** Whether it has the program of the exec server, which in strong ones only keeps commands together; likewise. */
  readonly hasExecServer: boolean;
  /** The folder on the host in which its exec server finds the worker; undefined when it has no server. */
  readonly meetingPlace: string | undefined;
  /** Files of Podman's that are the container's to write, such as /etc/hosts. */
  readonly ownFiles: readonly string[];
}

/** Whether its processes continue from an image of memory: the OCI runtime knows nothing of them then, and the worker cannot look into them. */
export const isCopy = ({ doorPid, initPid }: Pick<Container, "doorPid" | "initPid">): boolean => doorPid !== initPid;

/** The `process` part of an OCI runtime bundle: user, capabilities, limits and so on. */
interface ProcessTemplate {
  /** The first process; not that of a copy. */
  readonly args?: readonly string[];
  readonly env?: readonly string[];
  readonly cwd: string;
  readonly user?: { readonly uid: number; readonly gid: number; readonly additionalGids?: readonly number[] };
  readonly rlimits?: readonly object[];
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
  readonly mounts?: readonly { readonly destination: string; readonly source?: string }[];
  readonly linux?: { readonly namespaces?: readonly { readonly type: string; readonly path?: string }[] };
}

/** What the OCI runtime notes about a container once it has made it and left it to its monitor, which is before it runs; undefined until then. */
export function madeIn(host: Pick<Host, "crunDir">, containerId: string): RuntimeNote | undefined {
  const note = noteOf(host, containerId);
  return note && monitorOf(note.pid).length > 0 ? note : undefined;
}

/** What is known of a container before it is inspected. */
export interface Inspected extends Pick<ContainerSpec, "isolation" | "network"> {
  /** Of one that has been made, and may not run yet. */
  readonly note?: RuntimeNote | undefined;
  /** The program that carries its network, which need not be looked for then. */
  readonly networkPid?: number | undefined;
}

/** Inspects a running container of a sandbox that asked for this. @throws {ContainerNotRunning} */
export async function inspectContainer(
  host: Host,
  containerId: string,
  { isolation, network, note, networkPid }: Inspected,
  copies: Copies,
): Promise<Container> {
  const runtime = runtimeOf(host, isolation);
  const copied = copies.of(containerId);
  const state =
    (note && { status: "running", ...note }) ||
    (copied && copyOf(host.crunDir, containerId, copied.copy.pid)) ||
    (runtime === "crun" && recordOfCrun(host.crunDir, containerId)) ||
    (await stateOf(runtime, containerId));
  const pidNamespace = state.status === "running" && !isGone(state.pid) ? pidNamespaceOf(state.pid) : undefined;
  if (!pidNamespace) throw notRunning(`the container is ${state.status}`);
  const bundle = JSON.parse(readFileSync(join(state.bundle, "config.json"), "utf8")) as Bundle;
  return {
    id: containerId,
    isolation,
    pids: isolation === "strong" ? strongProcesses(state.pid) : [state.pid],
    initPid: state.pid,
    doorPid: copied?.waiting.pid ?? state.pid,
    pidNamespace,
    bundle: state.bundle,
    firstId: rootIdOf(state.pid),
    writableLayer: bundle.root.path.endsWith("/merged") ? join(bundle.root.path, "../diff") : undefined,
    process: bundle.process,
    group: groupOfContainer(containerId, state.pid),
    networkPids: network === "none" ? [] : networkPid === undefined ? networkPids(bundle, copied?.waiting.pid ?? state.pid) : [networkPid],
    ownFiles: (bundle.mounts ?? []).flatMap(({ destination, source }) => (source && ownPaths.includes(destination) ? [source] : [])),
    hasReaper: mountAt(bundle, reaperPath) !== undefined,
    hasExecServer: mountAt(bundle, execServerPath) !== undefined,
    meetingPlace: mountAt(bundle, meetingPlace)?.source,
  };
}

const mountAt = ({ mounts = [] }: Bundle, path: string) => mounts.find(({ destination }) => destination === path);

/** Whether a container still runs. Another process may have the number of its first one, or nobody has noticed yet that that has ended. */
export const isThere = ({ initPid, pidNamespace }: Pick<Container, "initPid" | "pidNamespace">): boolean =>
  pidNamespaceOf(initPid) === pidNamespace && !isGone(initPid);

/** Whether a process is such a program. */
export const carriesNetwork = (pid: number): boolean => networkProgram.test(commandLineOf(pid)[0] ?? "");

/**
 * slirp4netns or pasta, which know the namespace by its path, or by a process in it where it belongs to the container's user namespace.
 * Podman starts them right after the container's monitor, so that the search through all processes is short if it begins there.
 */
function networkPids({ linux }: Bundle, initPid: number): number[] {
  const network = linux?.namespaces?.find(({ type }) => type === "network");
  if (!network) return [];
  const name = network.path ?? String(initPid);
  const isProgram = (pid: number): boolean => {
    const [program = "", ...args] = commandLineOf(pid);
    return networkProgram.test(program) && args.includes(name);
  };
  const [monitor = initPid] = monitorOf(initPid);
  const all = processIds();
  const found = all.find((pid) => pid > monitor && isProgram(pid)) ?? all.find((pid) => pid < monitor && isProgram(pid));
  return found === undefined ? [] : [found];
}

/** @throws {ContainerNotRunning} when the runtime has no such container */
async function stateOf(runtime: string, containerId: string): Promise<RuntimeState> {
  const result = await run(runtime, ["state", containerId], { timeoutMs: stateTimeoutMs });
  if (result.exitCode !== 0) throw notRunning(result.stderr);
  return JSON.parse(result.stdout) as RuntimeState;
}

/** The first process of a container that has been made and not started. @throws {ContainerNotRunning} */
export function waitingIn(host: Pick<Host, "crunDir">, containerId: string): RuntimeNote {
  const note = noteOf(host, containerId);
  if (!note) throw notRunning("nothing waits in the container");
  return note;
}

function copyOf(crunDir: string, containerId: string, pid: number): RuntimeState | undefined {
  const note = noteOfCrun(crunDir, containerId);
  return note && { status: "running", pid, bundle: note.bundle };
}

/** What the OCI runtime notes about a container. */
export interface RuntimeNote {
  readonly pid: number;
  readonly bundle: string;
}

interface CrunNote extends RuntimeNote {
  readonly "process-start-time": number;
}

/** The same of a container that it has made, started or not; undefined when it has not, or that has ended. */
function noteOf({ crunDir }: Pick<Host, "crunDir">, containerId: string): RuntimeNote | undefined {
  const note = noteOfCrun(crunDir, containerId);
  return note && note.pid > 0 && startTimeOf(note.pid) === note["process-start-time"] ? note : undefined;
}

const noteOfCrun = (crunDir: string, containerId: string): CrunNote | undefined =>
  attempt(() => JSON.parse(readFileSync(join(crunDir, containerId, "status"), "utf8")) as CrunNote);

/** What crun would report for a running container, without the cost of a program; undefined when crun must be asked. */
function recordOfCrun(crunDir: string, containerId: string): RuntimeState | undefined {
  const note = noteOf({ crunDir }, containerId);
  return note && !existsSync(join(crunDir, containerId, "exec.fifo")) ? { status: "running", pid: note.pid, bundle: note.bundle } : undefined;
}

/**
 * Ends the processes of a container that are out of reach, because the user namespace in which theirs was made is gone: everything
 * but them was killed. Their own user may still end them. Does nothing to a container that can be reached.
 *
 * @param firstId the id that root of the container has here
 */
export async function endUnreachable({ runtime, crunDir }: Pick<Host, "runtime" | "crunDir">, containerId: string, firstId: number): Promise<boolean> {
  const pid = (runtime === "crun" ? recordOfCrun(crunDir, containerId)?.pid : undefined) ?? kernelOf(containerId);
  if (pid === undefined || pidNamespaceOf(pid)) return false;
  await run("setpriv", ["--reuid", String(firstId), "--clear-groups", "--", "kill", "-s", "KILL", String(pid)], { timeoutMs: endTimeoutMs });
  return until(() => startTimeOf(pid) === undefined, { timeoutMs: endTimeoutMs, pollMs: 10 });
}

/** A container whose processes exist, running or frozen; undefined when they are gone. */
export async function findContainer(runtime: string, containerId: string): Promise<Pick<Container, "group" | "pidNamespace"> | undefined> {
  const { pid } = await stateOf(runtime, containerId).catch((error: unknown) => {
    if (error instanceof ContainerNotRunning) return { pid: 0 };
    throw error;
  });
  const pidNamespace = pid > 0 ? pidNamespaceOf(pid) : undefined;
  return pidNamespace ? { group: groupOfContainer(containerId, pid), pidNamespace } : undefined;
}

/** The container is gone although its record says that it runs. */
export class ContainerNotRunning extends SandgateError {}

export const notRunning = (detail: string): ContainerNotRunning =>
  new ContainerNotRunning("unavailable", "the sandbox stopped and is started again", { cause: new Error(detail.trim()) });
