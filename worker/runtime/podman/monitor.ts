/**
 * Ends containers faster than Podman does. Each container has a monitor, conmon, which starts a whole Podman when the container
 * has ended, to clean up; a container that is removed at once does not need that.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { attempt } from "../../../shared/util/attempt.ts";
import { targetOf } from "../../../shared/util/libc.ts";
import { processIds } from "../../../shared/util/proc.ts";
import { until } from "../../../shared/waiting.ts";
import { childrenOf, commandLineOf, isGone } from "../process/proc.ts";
import { killNow } from "../process/program.ts";
import { monitorFolders } from "./container-store.ts";

const deathMsMax = 10_000;
const pollMs = 2;
/** As conmon reports a process that was killed. */
const killedCode = "137";

/**
 * Kills a container's monitor and first process, with which everything in it ends, and reports the end to Podman as the monitor
 * would have done. Also finds what Podman was starting when it was itself killed, and does not know of.
 *
 * @param runDir the folder in memory of this installation's Podman
 * @param nameOrId by its id, a container is found without a look at all processes
 * @returns the ids of the containers that had a monitor
 */
export async function endNow(runDir: string, nameOrId: string): Promise<string[]> {
  const noted = notedMonitor(runDir, nameOrId);
  // The note may be older than a restart of the machine, and the process id belong to another.
  const monitors = noted && isMonitor(noted, nameOrId) ? [noted] : noted ? [] : processIds().filter((pid) => isMonitor(pid, nameOrId));
  const ended = await Promise.all(monitors.map(end));
  // One that was about to end by itself does not say any more whose it was.
  return ended.filter((containerId) => containerId !== "");
}

/** The process id that a container's monitor notes; 0 when it has not. */
function notedMonitor(runDir: string, containerId: string): number {
  const notes = monitorFolders.map((folder) => attempt(() => readFileSync(join(runDir, "containers", folder, containerId, "userdata/conmon.pid"), "utf8")));
  return Number(notes.find((note) => note !== undefined) ?? 0);
}

/** The monitor of a container that is being made; undefined until there is one. */
export function monitorFor(runDir: string, containerId: string): number | undefined {
  const noted = notedMonitor(runDir, containerId);
  return noted && isMonitor(noted, containerId) ? noted : undefined;
}

/**
 * The first process of a container that the OCI runtime is making, once it has its namespaces and ids, and the folder in which the
 * runtime finds what it is to make. Undefined until then.
 */
export function beginningUnder(monitor: number): { readonly pid: number; readonly bundle: string } | undefined {
  const args = commandLineOf(monitor);
  const bundle = args[args.indexOf("-b") + 1];
  const pid = childrenOf(monitor).find((child) => isApart(child));
  return pid !== undefined && bundle ? { pid, bundle } : undefined;
}

/** The runtime itself, which is a child of the monitor as well, has our namespaces. */
const isApart = (pid: number): boolean => ["pid", "net"].every((kind) => isOther(pid, kind)) && hasIds(pid);

function isOther(pid: number, kind: string): boolean {
  const namespace = targetOf(`/proc/${pid}/ns/${kind}`);
  return namespace !== undefined && namespace !== targetOf(`/proc/self/ns/${kind}`);
}

/** Whether it is known which ids those of its user namespace are. */
const hasIds = (pid: number): boolean => (attempt(() => readFileSync(`/proc/${pid}/uid_map`, "latin1")) ?? "") !== "";

async function end(monitor: number): Promise<string> {
  const args = commandLineOf(monitor);
  const report = reportOf(args);
  // A monitor that is stopped reports nothing, and leaves its children their ids.
  attempt(() => process.kill(monitor, "SIGSTOP"));
  // These are the first process, or the runtime that makes it, whose children become the monitor's.
  const living = (): number[] => childrenOf(monitor).filter((pid) => !isGone(pid));
  const isOver = await until(() => living().map(killNow).length === 0, { timeoutMs: deathMsMax, pollMs });
  if (isOver && report) attempt(() => writeFileSync(report, killedCode));
  attempt(() => process.kill(monitor, isOver ? "SIGKILL" : "SIGCONT"));
  return containerOf(args);
}

/** Does the same to monitors that were found before. */
export async function endMonitors(monitors: readonly Monitor[]): Promise<void> {
  const living = monitors.filter(({ pid, containerId }) => isMonitor(pid, containerId));
  await Promise.all(living.map(({ pid }) => end(pid)));
}

/** The monitor of a container. */
export interface Monitor {
  readonly pid: number;
  readonly containerId: string;
}

/** All monitors that this installation's Podman has started, but those of other workers' containers. @param store where this worker's are */
export const monitorsOf = (runDir: string, store: string): Monitor[] =>
  processIds().flatMap((pid) => {
    const args = commandLineOf(pid);
    const inRunDir = (word: string): boolean => word.startsWith(`${runDir}/`);
    const isOurs = isConmon(args) && args.some(inRunDir) && (storeOf(args) === store || !inRunDir(storeOf(args)));
    return isOurs ? [{ pid, containerId: containerOf(args) }] : [];
  });

/** As a monitor tells it to the Podman that it starts at the end. */
const storeOf = (args: readonly string[]): string => args[args.indexOf("--root") + 2] ?? "";

/** Whether a container has a monitor, whichever installation's it is. */
export const isMonitored = (containerId: string): boolean => processIds().some((pid) => isMonitor(pid, containerId));

/** The file by which a monitor tells Podman that its container has ended. */
function reportOf(args: readonly string[]): string | undefined {
  const dir = args[args.indexOf("--exit-dir") + 1];
  return dir && join(dir, containerOf(args));
}

/** @param nameOrId of the container */
function isMonitor(pid: number, nameOrId: string): boolean {
  const args = commandLineOf(pid);
  return isConmon(args) && args.includes(nameOrId);
}

const isConmon = (args: readonly string[]): boolean => /(^|\/)conmon$/.test(args[0] ?? "");

const containerOf = (args: readonly string[]): string => args[args.indexOf("-c") + 1] ?? "";
