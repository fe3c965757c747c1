/**
 * Machines run by a real systemd, in namespaces of their own on this one: process 1, units, user managers, cgroup v2. What they
 * lack is the kernel's to give: controllers that this machine has in cgroup v1, loop devices, and a way to the internet.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { appDir } from "../../shared/programs.mjs";
import { parseMounts } from "../../shared/util/mounts.ts";
import { accountEnvironment, inPodmanNamespace } from "../../systemd/base/as-account.ts";
import { CommandError, run } from "../../systemd/base/run.ts";
import { searchPath } from "../../systemd/base/search-path.mjs";
import { Terminal } from "../../systemd/base/terminal.ts";
import { createAdministrator } from "../../systemd/setup/administrator.ts";
import { findImageSources } from "../../systemd/setup/apt-sources.ts";
import { imageBuildingPackages, systemPackageNames } from "../../systemd/setup/packages.ts";
import { ensure } from "../../systemd/setup/step.ts";
import { waitForLock } from "../../systemd/supervisor/lock.ts";
import { preparedExecServer, preparedImageId, preparedInstance } from "../helpers/prepare.ts";
import { until } from "../helpers/until.ts";
import type { Place } from "./network.ts";

/** Versions of Debian: 12 and 13. */
const suites = ["bookworm", "trixie"] as const;
type Suite = (typeof suites)[number];
/** What a machine has: what Sandgate's set-up would install, because the machine reaches no archive, and what makes it one. */
const packages = [...systemPackageNames, "systemd", "systemd-sysv", "dbus", "libpam-systemd", "procps", "sudo"].sort();
const volumeBytes = 4 * 1024 ** 3;
const bootTimeoutMs = 60_000;

/** Where programs of the machine find the program to install. */
export const programDir = "/opt/sandgate";
/** The operator's volume. */
export const volumeDir = "/srv/volume";

export class Machine implements AsyncDisposable {
  readonly name: string;
  readonly #base: string;
  readonly #dir: string;
  readonly #group: string;
  #systemd: ChildProcess | undefined;
  /** Its process 1. */
  #init = 0;

  /** The network that it is on; none when absent. */
  readonly #place: Place | undefined;

  private constructor(name: string, base: string, dir: string, group: string, place: Place | undefined) {
    this.name = name;
    this.#place = place;
    this.#base = base;
    this.#dir = dir;
    this.#group = group;
  }

  /** A machine that has been booted, with the program as a checkout in `programDir`. */
  static async start(name: string, place?: Place, suite: Suite = "trixie"): Promise<Machine> {
    const base = await baseSystem(suite);
    const dir = mkdtempSync(join(tmpdir(), `machine-${name}-`));
    const mount = parseMounts(readFileSync("/proc/self/mountinfo", "utf8")).find(({ type }) => type === "cgroup2");
    if (!mount) throw new Error("this machine has no cgroup v2");
    const machine = new Machine(name, base, dir, join(mount.point, `sandgate-test-${process.pid}-${name}`), place);
    try {
      for (const folder of ["upper", "work", "root", "volume"]) mkdirSync(join(dir, folder));
      cpSync(join(base, "var"), join(dir, "var"), { recursive: true, preserveTimestamps: true, verbatimSymlinks: true });
      await machine.#makeVolume();
      const target = join(dir, "upper", programDir);
      mkdirSync(target, { recursive: true });
      for (const part of ["package.json", "package-lock.json", "tsconfig.json", "build", "node_modules", "gateway", "shared", "systemd", "worker"]) {
        await run(["cp", "-a", "--reflink=auto", join(appDir, part), target]);
      }
      await machine.boot();
      return machine;
    } catch (error) {
      await machine[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Runs a command in it as root. @returns its standard output @throws {CommandError} */
  run(...argv: string[]): Promise<string> {
    return run(this.#inside(argv), { cwd: "/" });
  }

  /** The same for a line of shell. */
  shell(script: string): Promise<string> {
    return this.run("sh", "-euc", script);
  }

  /** Runs a program of this machine on the network of the other. */
  onItsNetwork(...argv: string[]): Promise<string> {
    return run(["nsenter", "--target", String(this.#init), "--net", ...argv], { cwd: "/" });
  }

  async boot(): Promise<void> {
    mkdirSync(this.#group, { recursive: true });
    const log = openSync(join(this.#dir, "console.log"), "a");
    const namespaces = ["unshare", "--mount", "--pid", "--fork", "--cgroup", "--uts", "--ipc", "--net", "--propagation=private"];
    const enter = ["sh", "-c", 'echo 0 > "$0/cgroup.procs" && exec "$@"', this.#group];
    const [file = "", ...args] = [...enter, ...namespaces, "sh", join(appDir, "test/host/boot.sh")];
    const env = { PATH: searchPath, BASE: this.#base, DIR: this.#dir, NAME: this.name };
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
  }

  /**
   * Installs Sandgate as an administrator would who brings the default image along.
   *
   * @param settings lines for the settings file, beside those that the installation writes
   */
  async install(options: readonly string[], settings: readonly string[] = [], program = join(programDir, "systemd/install")): Promise<string> {
    const command = [program, ...options];
    // There is no archive of packages to build the default image from; what comes before it, the image needs.
    const lacksArchive = (error: unknown): boolean => error instanceof CommandError && error.message.includes("mmdebstrap");
    const first = await this.run(...command).catch((error: unknown) => (lacksArchive(error) ? undefined : Promise.reject(error)));
    if (first !== undefined) return first;
    await this.provideImage();
    for (const line of settings) await this.run("sh", "-c", 'echo "$0" >> /etc/sandgate/sandgate.env', line);
    return this.run(...command);
  }

  /** Copies a file of this machine to the other. @returns its path there */
  give(file: string): string {
    cpSync(file, join(this.#dir, "var/tmp", basename(file)));
    return join("/var/tmp", basename(file));
  }

  /** Gives it the default image and the program that the set-up would make, for which it would need an archive of packages. */
  async provideImage(): Promise<void> {
    const instance = await preparedInstance();
    const id = (await preparedImageId()) ?? "";
    const shared = join(this.#dir, "var/tmp");
    const save = inPodmanNamespace(instance, ["podman", "save", instance.config.defaultImage]);
    await run(["sh", "-c", '"$@" > "$0"', join(shared, "image.tar"), ...save], { env: accountEnvironment(instance), cwd: "/" });
    cpSync(preparedExecServer(), join(shared, "exec-server"));
    await this.shell(`
      cd / && runtime=$(ls -d /run/user/"$(id -u sandgate)"/sg-*) podman=/var/lib/sandgate/podman
      setpriv --reuid sandgate --regid sandgate --init-groups env -i HOME=/var/lib/sandgate/home PATH="$PATH" XDG_RUNTIME_DIR="$runtime" \\
        CONTAINERS_STORAGE_CONF=$podman/storage.conf CONTAINERS_CONF=$podman/containers.conf podman load --quiet < /var/tmp/image.tar
      install -o root -g sandgate -m 0640 /dev/null $podman/default-image
      echo "${id} ${instance.config.defaultImage}" > $podman/default-image
      install -m 0755 /var/tmp/exec-server $podman/${basename(preparedExecServer())}
      rm /var/tmp/image.tar /var/tmp/exec-server`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.cutPower();
    const volume = join(this.#dir, "volume");
    if (parseMounts(readFileSync("/proc/self/mountinfo", "utf8")).some(({ point }) => point === volume)) await run(["umount", volume]);
    rmSync(this.#dir, { recursive: true, force: true });
  }

  #inside(argv: readonly string[]): string[] {
    return ["nsenter", "--target", String(this.#init), "--all", "env", "-i", `PATH=${searchPath}`, "HOME=/root", "LC_ALL=C.UTF-8", ...argv];
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

function removeGroups(dir: string): void {
  if (!existsSync(dir)) return;
  for (const entry of readdirSync(dir, { withFileTypes: true })) if (entry.isDirectory()) removeGroups(join(dir, entry.name));
  rmdirSync(dir);
}

/** The root file system of all machines with a version of Debian, built when its recipe is new, by one process while others wait for it. */
async function baseSystem(suite: Suite): Promise<string> {
  const { paths } = await preparedInstance();
  const folder = join(paths.data, "machines");
  mkdirSync(folder, { recursive: true, mode: 0o755 });
  const lock = await waitForLock(`${folder}.lock`, new AbortController().signal);
  try {
    return await builtSystem(folder, suite);
  } finally {
    lock.release();
  }
}

const recipeOf = (suite: Suite): string =>
  createHash("sha256")
    .update(JSON.stringify([suite, packages]))
    .digest("hex")
    .slice(0, 16);

async function builtSystem(folder: string, suite: Suite): Promise<string> {
  const { config } = await preparedInstance();
  const base = join(folder, recipeOf(suite));
  if (existsSync(base)) return base;
  const current = suites.map(recipeOf);
  for (const name of readdirSync(folder)) if (!current.includes(name)) rmSync(join(folder, name), { recursive: true, force: true });
  await ensure(imageBuildingPackages(createAdministrator(new Terminal(process.stderr), new AbortController().signal)), new Terminal(process.stderr));
  const [archive] = (await findImageSources(config)).archives;
  const partial = `${base}.partial`;
  await run(["mmdebstrap", "--quiet", "--variant=minbase", `--include=${packages.join(",")}`, suite, partial, archive?.uri ?? ""]);
  // Sandgate's own is the only one.
  rmSync(join(partial, "etc/systemd/system/multi-user.target.wants/nats-server.service"), { force: true });
  // It reaches no archive. Without any in its list, it knows at once.
  for (const name of ["sources.list", "sources.list.d"]) rmSync(join(partial, "etc/apt", name), { recursive: true, force: true });
  // There are no modules to load.
  await run(["systemctl", `--root=${partial}`, "mask", "systemd-modules-load.service"]).catch(() => undefined);
  renameSync(partial, base);
  return base;
}
