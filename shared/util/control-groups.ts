/** Where Sandgate's own control groups are: made by the set-up, used by the worker. See cgroups(7). */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type Mount, parseMounts } from "./mounts.ts";

/** The controllers that limit or count what a sandbox uses. Only `freezer` and `cpuacct` have no counterpart in cgroup v2, where every group has both. */
export const controllers = ["memory", "cpu", "cpuacct", "pids", "freezer"] as const;
export type Controller = (typeof controllers)[number];

/** The group of an account below the one in which this process runs, in each hierarchy. Some of the folders may not exist. */
export interface GroupFolders {
  readonly version: "v1" | "v2";
  readonly folders: Readonly<Partial<Record<Controller, string>>>;
  /** The name of each of them. */
  readonly name: string;
  /** Where the hierarchies are mounted. */
  readonly hierarchies: readonly string[];
}

interface Sources {
  /** The text of /proc/self/mountinfo. */
  readonly mounts?: string;
  /** The text of /proc/self/cgroup. */
  readonly own?: string;
}

/** The folders for the account with this user id, whether they exist or not; undefined where the host has no control groups. */
export function groupFoldersOf(uid: number | string, sources: Sources = {}): GroupFolders | undefined {
  const { mounts = readFileSync("/proc/self/mountinfo", "utf8"), own = readFileSync("/proc/self/cgroup", "utf8") } = sources;
  const all = parseMounts(mounts);
  const name = `sandgate-${uid}`;
  const mountOfV1 = (controller: Controller): Mount | undefined =>
    all.find(({ type, systemOptions }) => type === "cgroup" && systemOptions.includes(controller));
  const version = controllers.some(mountOfV1) ? "v1" : "v2";
  const unified = all.find(({ type }) => type === "cgroup2");
  const found = controllers.flatMap((controller) => {
    const mount = version === "v1" ? mountOfV1(controller) : unified;
    return mount ? [{ controller, mount, folder: join(groupIn(mount, own, version === "v1" ? controller : ""), name) }] : [];
  });
  if (found.length === 0) return undefined;
  const hierarchies = [...new Set(found.map(({ mount }) => mount.point))];
  return { version, name, hierarchies, folders: Object.fromEntries(found.map(({ controller, folder }) => [controller, folder])) };
}

/** Each folder once: several controllers may share one. */
export const distinctFolders = (folders: GroupFolders["folders"]): string[] => [...new Set(Object.values(folders))];

/** The folder of the group in which this process runs. In a container, only a part of the hierarchy may be mounted. */
function groupIn({ point, root }: Mount, own: string, controller: string): string {
  const line = own.split("\n").map((each) => /^\d+:([^:]*):(.*)$/.exec(each));
  const path = line.find((fields) => fields?.[1]?.split(",").includes(controller))?.[2] ?? "/";
  const below = root === "/" ? path : path === root || path.startsWith(`${root}/`) ? path.slice(root.length) : "/";
  const folder = join(point, below);
  return existsSync(folder) ? folder : point;
}
