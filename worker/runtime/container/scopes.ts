/**
 * Control groups for strong sandboxes where systemd delegates groups to the account. Podman's come from the OCI runtime, and
 * gVisor's makes none without root: the account's service manager makes them, as scopes, from processes that run already.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { SandgateError } from "../../../shared/errors.ts";
import { attempt } from "../../../shared/util/attempt.ts";
import { until } from "../../../shared/waiting.ts";
import { hostUserId, monitorOf } from "../process/proc.ts";
import { run } from "../process/run.ts";
import { type GroupLimits, GroupV2, type SandboxGroup } from "./groups.ts";

const callTimeoutMs = 30_000;
const pollMs = 5;
const slice = "app.slice";
const prefix = "sandgate-";
/** Of org.freedesktop.systemd1(5). */
const manager = ["org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager"];
const needed = ["memory", "cpu", "pids"];

export class Scopes {
  /** The group in which the manager makes scopes. */
  readonly #dir: string;

  private constructor(dir: string) {
    this.#dir = dir;
  }

  /** Undefined when the account has no service manager that can limit everything. */
  static async open(): Promise<Scopes | undefined> {
    const uid = hostUserId();
    const dir = `/sys/fs/cgroup/user.slice/user-${uid}.slice/user@${uid}.service`;
    const controllers = attempt(() => readFileSync(join(dir, "cgroup.controllers"), "utf8").trim().split(" ")) ?? [];
    if (!needed.every((controller) => controllers.includes(controller))) return undefined;
    if ((await call("GetDefaultTarget")).exitCode !== 0) return undefined;
    const scopes = new Scopes(join(dir, slice));
    scopes.#thaw();
    return scopes;
  }

  /**
   * Makes a group for a sandbox from its processes; it goes with the last of them. A sandbox that has one keeps it. Its monitor,
   * which outlives them for a moment, keeps the group until it was read that the kernel killed them.
   *
   * @throws {SandgateError} `internal_error` when a process could not be limited
   */
  async join(name: string, { initPid, pids }: { readonly initPid: number; readonly pids: readonly number[] }, limits: GroupLimits): Promise<SandboxGroup> {
    // A sandbox that was started again gets another, since processes of the former may not be gone.
    const unit = `${prefix}${name}-${initPid}.scope`;
    const group = new GroupV2(join(this.#dir, unit), true);
    const members = [...pids, ...monitorOf(initPid)];
    const outside = (): number[] => members.filter((pid) => !isIn(pid, unit));
    if (outside().length > 0) {
      const properties = propertiesOf(members, limits);
      const { stderr } = await call("StartTransientUnit", "ssa(sv)a(sa(sv))", unit, "fail", String(properties.length), ...properties.flat(), "0");
      if (!(await until(() => outside().length === 0, { timeoutMs: callTimeoutMs, pollMs })))
        throw new SandgateError("internal_error", "the sandbox could not be limited", { cause: new Error(stderr.trim()) });
    }
    group.complete(limits.memoryMiB);
    return group;
  }

  /** A worker that was killed may have left sandboxes frozen. */
  #thaw(): void {
    const names = existsSync(this.#dir) ? readdirSync(this.#dir) : [];
    for (const name of names.filter((each) => each.startsWith(prefix))) attempt(() => new GroupV2(join(this.#dir, name), true).freezer?.thaw());
  }
}

/** By systemd.resource-control(5); each with its type. */
function propertiesOf(pids: readonly number[], { cpus, memoryMiB, processes }: GroupLimits): string[][] {
  return [
    ["PIDs", "au", String(pids.length), ...pids.map(String)],
    ["Slice", "s", slice],
    ["CollectMode", "s", "inactive-or-failed"],
    // The worker freezes it and sets its share. All controllers are there then, and the manager leaves the rest of it alone when one process is killed.
    ["Delegate", "b", "true"],
    ["MemoryMax", "t", String(memoryMiB * 1024 ** 2)],
    ["MemorySwapMax", "t", "0"],
    ["CPUQuotaPerSecUSec", "t", String(Math.round(cpus * 1_000_000))],
    ["TasksMax", "t", String(processes)],
  ];
}

const call = (method: string, ...args: string[]): ReturnType<typeof run> =>
  run("busctl", ["--user", "--quiet", "call", ...manager, method, ...args], { timeoutMs: callTimeoutMs });

/** Whether a process is in the group, or gone. */
const isIn = (pid: number, unit: string): boolean => attempt(() => readFileSync(`/proc/${pid}/cgroup`, "utf8"))?.includes(`/${unit}`) ?? true;
