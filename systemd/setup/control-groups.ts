/**
 * Control groups for the account's sandboxes, below the group in which the installation runs. On systemd hosts with cgroup v2,
 * systemd delegates a group to the account, and nothing of this is needed.
 */
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { attempt } from "../../shared/util/attempt.ts";
import { accountEntrance, accountGroup, distinctFolders, type GroupFolders, groupFoldersOf, othersGroup } from "../../shared/util/control-groups.ts";
import { processIds } from "../../shared/util/proc.ts";
import { until } from "../../shared/waiting.ts";
import type { Account } from "../base/instance.ts";
import { CommandError } from "../base/run.ts";
import { identify } from "../supervisor/processes.ts";
import type { Administrator } from "./administrator.ts";

/** Exists where systemd is the first process. */
const systemdMark = "/run/systemd/system";
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
  else await run(unifiedScript, owner, distinctFolders(groups.folders)[0] ?? "", accountGroup, othersGroup, limited.join(" "));
  // Root's own processes stay outside, since whoever owns a group may stop and kill what is in it.
  const entrance = accountEntrance(account.uid);
  if (entrance && isOwn(account)) await run('echo "$1" > "$2"', String(process.pid), entrance);
}

/**
 * Removes the account's groups, wherever earlier starts have made them, for example below the group of a login session, unless
 * something of the account runs: another of its installations may use them.
 */
export async function removeControlGroups(account: Account, administrator: Administrator): Promise<void> {
  const { uid } = account;
  const groups = groupFoldersOf(uid);
  const found = groups?.hierarchies.flatMap((dir) => foldersNamed(groups.name, dir)) ?? [];
  if (found.length === 0 || !(await administrator.silent())) return;
  if (!isOwn(account) && !(await until(() => !hasProcesses(uid), { timeoutMs: settleMs, pollMs: 20 }))) return;
  const run = (...argv: string[]): Promise<unknown> => administrator.run("remove control groups that nothing uses", argv).catch(unlessItFailed);
  const inner = found.map((dir) => join(dir, accountGroup)).filter((dir) => existsSync(dir));
  for (const dir of inner.filter(isIn)) await run("sh", "-c", leaveScript, "sh", String(process.pid), dirname(dirname(dir)), othersGroup);
  // The kernel removes only groups without processes and without groups below.
  const which = isOwn(account) ? [...inner, ...found, "-maxdepth", "0"] : found;
  await run("find", ...which, "-depth", "-type", "d", "-exec", "rmdir", "{}", ";");
}

const isOwn = ({ uid }: Account): boolean => uid === process.getuid?.();

const hasProcesses = (uid: number): boolean => processIds().some((pid) => statSync(`/proc/${pid}`, { throwIfNoEntry: false })?.uid === uid && identify(pid));

/** In many containers these file systems are read-only, even for root. */
function unlessItFailed(error: unknown): void {
  if (!(error instanceof CommandError)) throw error;
}

/**
 * Makes the group and enables its controllers. A container's own group, which is the root of its hierarchy, has the container's
 * processes in it: they move into a group beside ours, which limits nothing.
 */
const unifiedScript = `
owner=$1 group=$2 account=$3 others=$4 controllers=$5 above=$(dirname "$2")
enable() { for c in $controllers; do echo "+$c" > "$1/cgroup.subtree_control" || return 1; done; }
if ! enable "$above" 2> /dev/null; then
  [ "$(cat /proc/self/cgroup)" = 0::/ ] || exit 1
  mkdir -p "$above/$others"
  while read -r each; do echo "$each" > "$above/$others/cgroup.procs" 2> /dev/null; done < "$above/cgroup.procs"
  enable "$above" || exit 1
fi
mkdir -p "$group/$account" && enable "$group" && chown "$owner" "$group" "$group/cgroup.procs" "$group/$account" "$group/$account/cgroup.procs"
`;

/** Takes this process out of our group. Where others had to move for it, it joins them, since groups with limits have no processes. */
const leaveScript = 'echo "$1" > "$2/cgroup.procs" 2> /dev/null || echo "$1" > "$2/$3/cgroup.procs"';

function areGiven({ version, folders }: GroupFolders, account: Account): boolean {
  const isOwned = distinctFolders(folders).every((folder) => statSync(folder, { throwIfNoEntry: false })?.uid === account.uid);
  return isOwned && (version === "v1" || !isOwn(account) || isIn(join(distinctFolders(folders)[0] ?? "", accountGroup)));
}

/** Whether this process runs in the group. */
const isIn = (folder: string): boolean => readFileSync(join(folder, "cgroup.procs"), "utf8").split("\n").includes(String(process.pid));

function foldersNamed(name: string, dir: string, depth = 0): string[] {
  if (depth > depthMax) return [];
  // A group of others may go at any time.
  const folders = attempt(() => readdirSync(dir, { withFileTypes: true }))?.filter((entry) => entry.isDirectory()) ?? [];
  return folders.flatMap((entry) => (entry.name === name ? [join(dir, name)] : foldersNamed(name, join(dir, entry.name), depth + 1)));
}
