/** Where Sandgate's own control groups are: made by the set-up, used by the worker. See cgroups(7). */
import { existsSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
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

/** With cgroup v2, only groups without processes of their own give limits to those below: the account's other processes run in this one. */
export const accountGroup = "account";
/** In a container, its other processes. */
export const othersGroup = "sandgate-others";

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
    if (!mount) return [];
    const group = version === "v1" ? groupIn(mount, own, controller) : aboveOurs(groupIn(mount, own, ""), name);
    return [{ controller, mount, folder: join(group, name) }];
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

/** The group in which the installation was started, also for a process that has since moved to a group below it. */
function aboveOurs(folder: string, name: string): string {
  if (folder.endsWith(`/${name}/${accountGroup}`)) return dirname(dirname(folder));
  return basename(folder) === othersGroup ? dirname(folder) : folder;
}

/** The file by which a process of the account enters the group for those; undefined where it need not, or has none. */
export function accountEntrance(uid: number): string | undefined {
  const groups = groupFoldersOf(uid);
  const [folder] = groups?.version === "v2" ? distinctFolders(groups.folders) : [];
  const file = folder && join(folder, accountGroup, "cgroup.procs");
  return file && existsSync(file) ? file : undefined;
}
