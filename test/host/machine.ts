/**
 * Machines run by a real systemd, in namespaces of their own on this one: process 1, units, user managers, cgroup v2. What they
 * lack is the kernel's to give: controllers that this machine has in cgroup v1, loop devices, and a way to the internet.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { appDir } from "../../shared/programs.mjs";
import { parseMounts } from "../../shared/util/mounts.ts";
import { accountEnvironment, inPodmanNamespace } from "../../systemd/base/as-account.ts";
import { run } from "../../systemd/base/run.ts";
import { searchPath } from "../../systemd/base/search-path.mjs";
import { preparedImageId, preparedInstance } from "../helpers/prepare.ts";
import { until } from "../helpers/until.ts";
import { LentControllers } from "./controllers.ts";
import { builtOnce, makeDebian, type Suite, servicePackages } from "./debian.ts";
import { removeGroups } from "./groups.ts";
import { asWorker, cleanly, InstalledMachine, podmanDir, programDir } from "./installed.ts";
import { groupsMount, inNamespaces } from "./namespaces.ts";
import type { Place } from "./network.ts";

const common = [...servicePackages, "procps", "sudo"];
/** Debian 12 has no CRIU. Its library is for Podman's own checkpoints, the compiler for what stands in for a right that the test's machine may lack. */
const packagesOf = (suite: Suite): string[] => [...common, ...(suite === "trixie" ? ["criu", "libc6-dev", "libcriu2", "tcc"] : [])].sort();
const volumeBytes = 4 * 1024 ** 3;
const bootTimeoutMs = 60_000;
/** Less than a unit may take to stop before systemd ends it. */
const shutdownTimeoutMs = 85_000;

/** The operator's volume. */
export const volumeDir = "/srv/volume";

export class Machine extends InstalledMachine implements AsyncDisposable {
  readonly name: string;
  readonly #base: string;
  readonly #dir: string;
  readonly #group: string;
  #systemd: ChildProcess | undefined;
  /** Its process 1. */
  #init = 0;

  /** The network that it is on; none when absent. */
  readonly #place: Place | undefined;
  readonly #controllers: LentControllers | undefined;

  private constructor(name: string, base: string, dir: string, group: string, place: Place | undefined, controllers: LentControllers | undefined) {
    super();
    this.name = name;
    this.#place = place;
    this.#controllers = controllers;
    this.#base = base;
    this.#dir = dir;
    this.#group = group;
  }

  /**
   * A machine that has been booted, with the program as a checkout in `programDir`.
   *
   * @param controllers `lent`: those that this machine has in cgroup v1 limit sandboxes there as well
   */
  static async start(name: string, place?: Place, suite: Suite = "trixie", controllers?: "lent"): Promise<Machine> {
    const base = await baseSystem(suite);
    const dir = mkdtempSync(join(tmpdir(), `machine-${name}-`));
    const groups = groupsMount();
    if (groups === undefined) throw new Error("this machine has no cgroup v2");
    const unique = `test-${process.pid}-${name}`;
    const lent = controllers === "lent" ? LentControllers.lend(unique) : undefined;
    const machine = new Machine(name, base, dir, join(groups, `sandgate-${unique}`), place, lent);
    try {
      for (const folder of ["upper", "work", "root", "volume", "program", "program.work"]) mkdirSync(join(dir, folder));
      cpSync(join(base, "var"), join(dir, "var"), { recursive: true, preserveTimestamps: true, verbatimSymlinks: true });
      await machine.#makeVolume();
      await machine.boot();
      return machine;
    } catch (error) {
      await machine[Symbol.asyncDispose]();
      throw error;
    }
  }

  run(...argv: string[]): Promise<string> {
    return run([...["nsenter", "--target", String(this.#init), "--all"], ...cleanly(argv)], { cwd: "/" });
  }

  /** Runs a program of this machine on the network of the other. */
  onItsNetwork(...argv: string[]): Promise<string> {
    return run(["nsenter", "--target", String(this.#init), "--net", ...argv], { cwd: "/" });
  }

  async boot(): Promise<void> {
    mkdirSync(this.#group, { recursive: true });
    this.#controllers?.make();
    const log = openSync(join(this.#dir, "console.log"), "a");
    const groups = [this.#group, ...(this.#controllers?.groups ?? [])];
    const enter = ["sh", "-euc", 'for group in $CGROUPS; do echo 0 > "$group/cgroup.procs"; done; exec "$@"', "sh"];
    const [file = "", ...args] = [...enter, ...inNamespaces, "sh", join(appDir, "test/host/boot.sh")];
    const controllers = this.#controllers?.mounted ?? "";
    const place = { BASE: this.#base, DIR: this.#dir, PROGRAM: appDir, PLACE: programDir };
    const env = { PATH: searchPath, ...place, NAME: this.name, CGROUPS: groups.join(" "), CONTROLLERS: controllers };
    this.#systemd = spawn(file, args, { env, stdio: ["ignore", log, log], detached: true });
    this.#init = await until(`${this.name} has a process 1`, () => this.#findInit(), bootTimeoutMs);
    await this.#place?.network.plugIn(this.#init, this.#place.number);
    const isUp = async (): Promise<boolean> => /running|degraded/.test(await this.shell("systemctl is-system-running || true"));
    await until(`${this.name} has booted`, isUp, bootTimeoutMs);
  }

  /** Takes its power away. */
  async cutPower(): Promise<void> {
    if (!this.#systemd) return;
    const ended = this.#systemd.exitCode === null && this.#systemd.signalCode === null ? once(this.#systemd, "exit") : undefined;
    writeFileSync(join(this.#group, "cgroup.kill"), "1");
    await ended;
    await until(`nothing of ${this.name} runs`, () => /populated 0/.test(readFileSync(join(this.#group, "cgroup.events"), "utf8")));
    this.#systemd = undefined;
    removeGroups(this.#group);
    this.#controllers?.remove();
  }

  /** Has it shut down by itself, as when somebody presses the button. */
  async shutDown(): Promise<void> {
    const ended = this.#systemd?.exitCode === null ? once(this.#systemd, "exit", { signal: AbortSignal.timeout(shutdownTimeoutMs) }) : undefined;
    await this.run("systemctl", "poweroff");
    await ended;
    await this.cutPower();
  }

  /** Copies a file of the machine's folder for temporary files to this one, also while it is off. */
  take(name: string, to: string): void {
    cpSync(join(this.#dir, "var/tmp", name), to);
  }

  async give(file: string): Promise<string> {
    cpSync(file, join(this.#dir, "var/tmp", basename(file)));
    return join("/var/tmp", basename(file));
  }

  /** This machine's own default image. */
  protected async provideDefaultImage(): Promise<void> {
    const instance = await preparedInstance();
    const { defaultImage } = instance.config;
    const archive = join(this.#dir, "var/tmp/image.tar");
    const save = inPodmanNamespace(instance, ["podman", "save", defaultImage]);
    await run(["sh", "-c", '"$@" > "$0"', archive, ...save], { env: accountEnvironment(instance), cwd: "/" });
    await this.shell(`
      ${asWorker} podman load --quiet < /var/tmp/image.tar
      install -o root -g sandgate -m 0640 /dev/null ${podmanDir}/default-image
      echo "${await preparedImageId()} ${defaultImage}" > ${podmanDir}/default-image
      rm /var/tmp/image.tar`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.cutPower();
    const volume = join(this.#dir, "volume");
    if (parseMounts(readFileSync("/proc/self/mountinfo", "utf8")).some(({ point }) => point === volume)) await run(["umount", volume]);
    rmSync(this.#dir, { recursive: true, force: true });
  }

  async #makeVolume(): Promise<void> {
    const [image, place] = [join(this.#dir, "volume.img"), join(this.#dir, "volume")];
    writeFileSync(image, "");
    truncateSync(image, volumeBytes);
    await run(["mkfs.btrfs", "--quiet", image]);
    await run(["mount", "-o", "loop,user_subvol_rm_allowed,nosuid,nodev", image, place]);
  }

  /** The program that is process 1 in its namespace. */
  #findInit(): number | undefined {
    const files = [this.#group, join(this.#group, "init.scope")].map((dir) => join(dir, "cgroup.procs")).filter(existsSync);
    const pids = files.flatMap((file) => readFileSync(file, "utf8").split("\n").filter(Boolean).map(Number));
    return pids.find((pid) => {
      const status = existsSync(`/proc/${pid}/status`) ? readFileSync(`/proc/${pid}/status`, "utf8") : "";
      return /^Name:\s+systemd$/m.test(status) && /^NSpid:.*\s1$/m.test(status);
    });
  }
}

/** The root file system of all machines with a version of Debian. It is built once on this machine, which takes a minute. */
export const baseSystem = (suite: Suite): Promise<string> =>
  builtOnce(`machines-${suite}`, packagesOf(suite), async (partial) => {
    await makeDebian(partial, packagesOf(suite), suite);
    // There are no modules to load.
    await run(["systemctl", `--root=${partial}`, "mask", "systemd-modules-load.service"]).catch(() => undefined);
  });
