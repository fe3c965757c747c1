/** Users of this machine that tests have for themselves, and what such a user has left on it. */
import { randomBytes } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { appDir } from "../../shared/programs.mjs";
import { attempt } from "../../shared/util/attempt.ts";
import { groupFoldersOf } from "../../shared/util/control-groups.ts";
import { parseMounts } from "../../shared/util/mounts.ts";
import { processIds } from "../../shared/util/proc.ts";
import { type Account, type Instance, runtimeBase } from "../../systemd/base/instance.ts";
import { run, succeeds } from "../../systemd/base/run.ts";
import { idFiles, idRangesOf } from "../../systemd/base/subordinate-ids.ts";
import { describeProcess, identify, type ProcessId, signalProcess } from "../../systemd/supervisor/processes.ts";
import { until } from "./until.ts";
import { loopFiles } from "./volume.ts";

/** Enough of a checkout for `npm start`. */
const tree = ["package.json", "package-lock.json", "tsconfig.json", "build", "gateway", "node_modules", "shared", "systemd", "worker"];
const rules = "/etc/sudoers.d";

/** A name that no user of this machine has. */
export const unusedName = (): string => `sgt-${randomBytes(4).toString("hex")}`;

/** The account with this name; undefined if there is none. */
export async function accountNamed(wanted: string): Promise<Account | undefined> {
  const [name = "", , uid, gid, , home = "/"] = (await run(["getent", "passwd", wanted]).catch(() => "")).split(":");
  return name === wanted ? { name, uid: Number(uid), gid: Number(gid), home } : undefined;
}

/** A person who may do everything with `sudo`, without a password, and has a checkout of their own. */
export class Sudoer implements AsyncDisposable {
  readonly account: Account;
  /** The folder of the checkout. */
  readonly app: string;

  private constructor(account: Account) {
    this.account = account;
    this.app = join(account.home, "sandgate");
  }

  static async make(): Promise<Sudoer> {
    const name = unusedName();
    try {
      await run(["useradd", "--create-home", "--shell", "/bin/sh", name]);
      const account = await accountNamed(name);
      if (!account) throw new Error(`there is no user ${name}`);
      const { app } = new Sudoer(account);
      mkdirSync(app);
      await run(["cp", "-a", "--reflink=auto", ...tree.map((each) => join(appDir, each)), app]);
      await run(["chown", "-R", "--no-dereference", `${account.uid}:${account.gid}`, app]);
      writeFileSync(join(rules, name), `${name} ALL=(ALL:ALL) NOPASSWD: ALL\n`, { mode: 0o440 });
      return new Sudoer(account);
    } catch (error) {
      await forget(name);
      throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await forget(this.account.name);
  }
}

/** The processes of an account, and those in its sandboxes. */
function processesOf(account: Account): ProcessId[] {
  const ranges = Object.values(idFiles).flatMap((file) => idRangesOf(account, file));
  const isIts = (id: number): boolean => id === account.uid || ranges.some(({ first, count }) => id >= first && id < first + count);
  // Not what /proc/PID belongs to: that may be root.
  const uidOf = (pid: number): number => Number(/^Uid:\s+(\d+)/m.exec(textOf(pid, "status"))?.[1] ?? -1);
  return processIds().flatMap((pid) => (isIts(uidOf(pid)) ? (identify(pid) ?? []) : []));
}

const textOf = (pid: number, file: string): string => attempt(() => readFileSync(`/proc/${pid}/${file}`, "utf8")) ?? "";

/** The control groups of an account, wherever they are. */
export async function groupsOf({ uid }: Account): Promise<string[]> {
  const { name, hierarchies } = groupFoldersOf(uid) ?? { name: "", hierarchies: [] };
  // Groups of others may go while it looks.
  const found = await run(["sh", "-c", 'name=$1 && shift && find "$@" -type d -name "$name" 2> /dev/null || true', "sh", name, ...hierarchies]);
  return found.split("\n").filter(Boolean);
}

/** All that an installation has left with the kernel: processes, also of root's, control groups, mounts and loop devices; and half a build. */
export async function leftBy({ account, paths, runtimeDir }: Instance): Promise<string[]> {
  const mounts = parseMounts(readFileSync("/proc/self/mountinfo", "utf8")).map(({ point }) => point);
  const ids = new Set([...processesOf(account).map(({ pid }) => pid), ...processIds().filter((pid) => textOf(pid, "cmdline").includes(paths.data))]);
  return [
    ...[...ids].filter((pid) => pid !== process.pid && identify(pid)).map(describeProcess),
    ...(await groupsOf(account)),
    ...[...mounts, ...loopFiles()].filter((path) => path.startsWith(`${paths.data}/`)),
    ...readdirSync("/var/tmp").filter((name) => name.startsWith(`sandgate-image-${basename(runtimeDir)}-`)),
  ];
}

/** Removes a user, if there is one with this name, after all that runs as it, and everything that it may have. */
export async function forget(name: string): Promise<void> {
  rmSync(join(rules, name), { force: true });
  const account = await accountNamed(name);
  if (!account) return;
  await until(`no process of ${name} runs`, () => {
    const running = processesOf(account);
    for (const each of running) signalProcess(each, "SIGKILL");
    return running.length === 0;
  });
  const mounts = parseMounts(readFileSync("/proc/self/mountinfo", "utf8")).filter(
    ({ point }) => point.startsWith(`${account.home}/`) || point === runtimeBase(account),
  );
  for (const { point } of mounts.reverse()) await run(["umount", "--lazy", point]);
  for (const group of await groupsOf(account)) await succeeds(["find", group, "-depth", "-type", "d", "-exec", "rmdir", "{}", ";"]);
  for (const folder of [runtimeBase(account), account.home]) rmSync(folder, { recursive: true, force: true });
  await run(["userdel", name]);
}
