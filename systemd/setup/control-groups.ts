/**
 * Control groups for the account's sandboxes, below the group in which the installation runs. On systemd hosts with cgroup v2,
 * systemd delegates a group to the account, and nothing of this is needed.
 */
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { distinctFolders, type GroupFolders, groupFoldersOf } from "../../shared/util/control-groups.ts";
import { until } from "../../shared/waiting.ts";
import type { Account } from "../base/instance.ts";
import { CommandError } from "../base/run.ts";
import { identify, processIds } from "../supervisor/processes.ts";
import type { Administrator } from "./administrator.ts";

/** Exists where systemd is the first process. */
const systemdMark = "/run/systemd/system";
/** The group for the supervisor and the parts: with cgroup v2, only groups without processes of their own give limits to those below. */
const partsGroup = "parts";
const limited = ["memory", "cpu", "pids"];
const depthMax = 8;
/** Time for the last processes of an account, which were just killed, to disappear. */
const settleMs = 1_000;

/**
 * Gives the groups to the account if that needs no password. Without them, sandboxes still run; the worker watches their limits
 * then, and the host table says so.
 */
export async function offerControlGroups(account: Account, administrator: Administrator): Promise<void> {
  const groups = groupFoldersOf(account.uid);
  if (!groups || (groups.version === "v2" && existsSync(systemdMark)) || !(await administrator.silent())) return;
  if (areGiven(groups, account)) return;
  const run = (script: string, ...args: string[]): Promise<unknown> =>
    administrator.run("limit what sandboxes use", ["sh", "-c", script, "sh", ...args]).catch(unlessItFailed);
  const owner = `${account.uid}:${account.gid}`;
  // Only the folder itself: the account makes groups in it, but cannot change the limits of all of them together.
  if (groups.version === "v1")
    await run('owner=$1 && shift && for d; do mkdir -p -m 0755 "$d" && chown "$owner" "$d"; done', owner, ...distinctFolders(groups.folders));
  else await run(unifiedScript, owner, distinctFolders(groups.folders)[0] ?? "", String(process.pid), partsGroup, limited.join(" "));
}

/**
 * Removes the account's groups, wherever earlier starts have made them, for example below the group of a login session, unless
 * something of the account runs: another of its installations may use them.
 */
export async function removeControlGroups({ uid }: Account, administrator: Administrator): Promise<void> {
  const groups = groupFoldersOf(uid);
  const found = groups?.hierarchies.flatMap((dir) => foldersNamed(groups.name, dir)) ?? [];
  if (found.length === 0 || !(await administrator.silent())) return;
  const isOwn = uid === process.getuid?.();
  if (!isOwn && !(await until(() => !hasProcesses(uid), { timeoutMs: settleMs, pollMs: 20 }))) return;
  // The kernel removes only groups without processes and without groups below.
  const below = isOwn ? ["-maxdepth", "0"] : [];
  const remove = ["find", ...found, ...below, "-depth", "-type", "d", "-exec", "rmdir", "{}", ";"];
  await administrator.run("remove control groups that nothing uses", remove).catch(unlessItFailed);
}

const hasProcesses = (uid: number): boolean => processIds().some((pid) => statSync(`/proc/${pid}`, { throwIfNoEntry: false })?.uid === uid && identify(pid));

/** In many containers these file systems are read-only, even for root. */
function unlessItFailed(error: unknown): void {
  if (!(error instanceof CommandError)) throw error;
}

/**
 * Makes the group, enables its controllers, and moves this process into a group below. A container's own group, which is the
 * root of its hierarchy, has the container's other processes in it: they move into a group beside ours, which limits nothing.
 */
const unifiedScript = `
owner=$1 group=$2 pid=$3 parts=$4 controllers=$5 above=$(dirname "$2")
enable() { for c in $controllers; do echo "+$c" > "$1/cgroup.subtree_control" || return 1; done; }
mkdir -p "$group/$parts" && echo "$pid" > "$group/$parts/cgroup.procs" || exit 1
if ! enable "$above" 2> /dev/null; then
  [ "$(cat /proc/self/cgroup)" != 0::/ ] && exit 1
  mkdir -p "$above/sandgate-others"
  while read -r each; do echo "$each" > "$above/sandgate-others/cgroup.procs" 2> /dev/null; done < "$above/cgroup.procs"
  enable "$above" || exit 1
fi
enable "$group" && chown "$owner" "$group" "$group/cgroup.procs" "$group/$parts" "$group/$parts/cgroup.procs"
`;

function areGiven(groups: GroupFolders, { uid }: Account): boolean {
  const isOwned = distinctFolders(groups.folders).every((folder) => statSync(folder, { throwIfNoEntry: false })?.uid === uid);
  return isOwned && (groups.version === "v1" || isIn(join(distinctFolders(groups.folders)[0] ?? "", partsGroup)));
}

/** Whether this process runs in the group. */
const isIn = (folder: string): boolean => readFileSync(join(folder, "cgroup.procs"), "utf8").split("\n").includes(String(process.pid));

function foldersNamed(name: string, dir: string, depth = 0): string[] {
  if (depth > depthMax) return [];
  const folders = readdirSync(dir, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  return folders.flatMap((entry) => (entry.name === name ? [join(dir, name)] : foldersNamed(name, join(dir, entry.name), depth + 1)));
}
