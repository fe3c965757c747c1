/** What workers have on their host because of sandboxes and snapshots. */
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { parseMounts } from "../../shared/util/mounts.ts";
import type { TestProcess } from "./process.ts";
import type { Stack } from "./stack.ts";
import { until } from "./until.ts";

export interface HostState {
  /** Names of layer folders, including incomplete ones. */
  readonly layers: string[];
  /** Names of folders of sandboxes. */
  readonly roots: string[];
  /** Mount points of our overlays. */
  readonly mounts: string[];
}

export function hostState({ spec, pid }: TestProcess): HostState {
  const dataDir = spec.env.SANDGATE_DATA_DIR ?? assert.fail("a worker has a folder of its own");
  const { SANDGATE_VOLUME_DIR: volume, SANDGATE_WORKER_ID: id = "" } = spec.env;
  const dirs = [join(dataDir, "worker"), ...(volume ? [join(volume, id)] : [])];
  const all = (folder: string): string[] => dirs.flatMap((dir) => namesIn(join(dir, folder))).sort();
  const mounts = parseMounts(readFileSync(`/proc/${pid}/mountinfo`, "utf8"))
    .filter(({ type }) => type === "overlay")
    .map(({ point }) => point);
  return { layers: all("layers"), roots: all("roots"), mounts: mounts.filter((path) => dirs.some((dir) => path.startsWith(`${dir}/`))) };
}

const namesIn = (dir: string): string[] => (existsSync(dir) ? readdirSync(dir) : []);

/** Whether the worker's sandboxes are on a volume, where a snapshot is the whole of its files. */
export const isOnVolume = ({ spec }: TestProcess): boolean => Boolean(spec.env.SANDGATE_VOLUME_DIR);

/** Paused processes of sandboxes, given by their containers. */
export function stoppedProcesses(containers: Awaited<ReturnType<Stack["containers"]>>): string[] {
  const spaces = new Set(containers.map(({ pid }) => pidNamespaceOf(String(pid))));
  return readdirSync("/proc").filter((pid) => /^\d+$/.test(pid) && isStopped(pid) && spaces.has(pidNamespaceOf(pid)));
}

function isStopped(pid: string): boolean {
  try {
    return /^State:\s+T/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}

function pidNamespaceOf(pid: string): string {
  try {
    return readlinkSync(`/proc/${pid}/ns/pid`);
  } catch {
    return "";
  }
}

/** Resolves when exactly these layers and roots exist, with a mount for each root. */
export async function untilHostHas(worker: TestProcess, { layers, roots }: { layers: number; roots: readonly string[] }): Promise<void> {
  let state: HostState | undefined;
  await until("the host has what is needed and nothing else", () => {
    state = hostState(worker);
    const isMounted = state.mounts.length === roots.length;
    return isMounted && state.layers.length === layers && !state.layers.some((name) => name.includes(".")) && state.roots.join() === [...roots].sort().join();
  }).catch((error: Error) => {
    throw new Error(`${error.message}: wanted ${JSON.stringify({ layers, roots })}, found ${JSON.stringify(state)}`);
  });
}
