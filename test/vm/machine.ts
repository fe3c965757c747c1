/**
 * A whole machine, emulated by QEMU: a kernel and a systemd of its own, with everything in cgroup v2. It is some ten times slower
 * than this one. Nothing reaches it but this machine, on its loopback interface, and it reaches nothing.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { CommandError, run } from "../../systemd/base/run.ts";
import { searchPath } from "../../systemd/base/search-path.mjs";
import { freePort } from "../../systemd/supervisor/ports.ts";
import { until } from "../helpers/until.ts";
import { asWorker, cleanly, debianPackage, InstalledMachine } from "../host/installed.ts";
import { type Files, makeFiles } from "./disk.ts";
import { emulator, installEmulator } from "./emulator.ts";

const memoryMiB = 3_072;
const bootTimeoutMs = 600_000;
const host = "127.0.0.1";
/** Whose host key is known. */
const name = "virtual-machine";
/** An emulator uses all the processors that it gets. */
const modestly = ["nice", "-n", "15", "setpriv", "--pdeathsig", "KILL", "--"];
/** A quick one for `default`: small, and no archive of packages is needed to make it. */
export const smallImage = "localhost/small:latest";

interface Ports {
  readonly ssh: number;
  /** Where the gateway's port is on this machine. */
  readonly gateway: number;
}

export class VirtualMachine extends InstalledMachine implements AsyncDisposable {
  readonly #dir: string;
  readonly #ports: Ports;
  readonly #programs: ChildProcess[] = [];

  private constructor(dir: string, ports: Ports) {
    super();
    this.#dir = dir;
    this.#ports = ports;
  }

  /** A machine that has been started, with the Debian package of Sandgate unpacked. */
  static async start(): Promise<VirtualMachine> {
    await installEmulator();
    const ports = { ssh: await freePort(host), gateway: await freePort(host) };
    const machine = new VirtualMachine(mkdtempSync(join(tmpdir(), "virtual-machine-")), ports);
    try {
      await machine.#boot(await makeFiles(machine.#dir, await debianPackage()));
      return machine;
    } catch (error) {
      await machine[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** The gateway's address for programs of this machine. */
  get url(): string {
    return `http://${host}:${this.#ports.gateway}`;
  }

  run(...argv: string[]): Promise<string> {
    return run(["ssh", ...this.#connection, name, "--", ...cleanly(argv).map(quoted)], { cwd: "/" });
  }

  async give(file: string): Promise<string> {
    const path = join("/var/tmp", basename(file));
    await run(["scp", "-q", ...this.#connection, file, `${name}:${path}`], { cwd: "/" });
    return path;
  }

  /** What the machine has printed, for a failure that is otherwise hard to explain. */
  get console(): string {
    return readFileSync(join(this.#dir, "console.log"), "utf8");
  }

  /** Resolves when all services are ready, which the installer may have given up to wait for. */
  override async install(...args: Parameters<InstalledMachine["install"]>): Promise<string> {
    try {
      return await super.install(...args);
    } catch (error) {
      if (!(error instanceof CommandError) || !error.message.includes("Not all services are ready")) throw error;
      const units = ["sandgate-nats.service", "sandgate-worker.service", "sandgate-gateway@1.service"];
      const areActive = async (): Promise<boolean> => !/inactive|activating|failed/.test(await this.shell(`systemctl is-active ${units.join(" ")} || true`));
      await until("all services are ready", areActive, bootTimeoutMs);
      return error.message;
    }
  }

  /** Makes an archive of a small image, and tells the command of its worker's account that gets it. */
  async imageImport(): Promise<string> {
    const changes = ["ENV PATH=/bin", "WORKDIR /root", 'CMD ["/bin/sh"]'].map((change) => `--change '${change}'`).join(" ");
    await this.shell(`
      image=$(mktemp -d) && cd "$image"
      mkdir -m 755 bin dev etc proc root run sys tmp usr var && chmod 755 . && chmod 1777 tmp
      cp "$(command -v busybox)" bin && chroot . /bin/busybox --install -s /bin
      echo root:x:0:0:root:/root:/bin/sh > etc/passwd
      tar -cf /var/tmp/image.tar . && cd / && rm -r "$image"`);
    return `${asWorker} podman import --quiet ${changes} /var/tmp/image.tar ${smallImage}`;
  }

  protected async provideDefaultImage(): Promise<void> {
    await this.shell(`${await this.imageImport()}
      rm /var/tmp/image.tar
      echo SANDGATE_DEFAULT_IMAGE=${smallImage} >> /etc/sandgate/sandgate.env`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const program of this.#programs.reverse()) {
      if (program.exitCode !== null || program.signalCode !== null) continue;
      program.kill("SIGKILL");
      await once(program, "exit");
    }
    rmSync(this.#dir, { recursive: true, force: true });
  }

  async #boot({ disk, kernel, initrd, key, hostKey }: Files): Promise<void> {
    const { ssh, gateway } = this.#ports;
    const forwarded = [`${ssh}-:22`, `${gateway}-:8080`].map((ports) => `hostfwd=tcp:${host}:${ports}`);
    const started = [
      ...["-accel", "tcg,thread=multi", "-cpu", "max,la57=off", "-m", String(memoryMiB), "-smp", "2", "-nodefaults", "-display", "none", "-no-reboot"],
      ...["-serial", `file:${join(this.#dir, "console.log")}`],
      ...["-kernel", kernel, "-initrd", initrd, "-append", "console=ttyS0 root=/dev/vda rw quiet mitigations=off"],
      ...["-drive", `file=${disk},format=raw,if=virtio,cache=unsafe`],
      ...["-netdev", `user,id=net0,restrict=on,${forwarded.join(",")}`, "-device", "virtio-net-pci,netdev=net0"],
    ];
    const machine = this.#spawn([...modestly, emulator, ...started]);
    const [algorithm, ownKey] = readFileSync(hostKey, "utf8").split(" ");
    writeFileSync(join(this.#dir, "known-hosts"), `${name} ${algorithm} ${ownKey}\n`);
    await until(
      "ssh answers",
      async () => {
        if (machine.exitCode !== null) throw new Error(`${emulator} ended with ${machine.exitCode}`);
        await run(["ssh", ...this.#options(key), "-o", "ConnectTimeout=60", name, "true"], { cwd: "/", timeoutMs: 60_000 });
        return true;
      },
      bootTimeoutMs,
    ).catch((error: unknown) => {
      throw new Error(`the machine has not started; it printed: ${this.console.slice(-2_000)}`, { cause: error });
    });
    // One connection for all commands, since each takes seconds to be made.
    this.#spawn([...modestly, "ssh", ...this.#options(key), ...this.#connection, "-M", "-N", name]);
    await until("there is a connection", () => this.run("true").then(() => true), bootTimeoutMs);
    await until("it has booted", async () => /running|degraded/.test(await this.shell("systemctl is-system-running || true")), bootTimeoutMs);
  }

  /** Nothing of this machine's own configuration of ssh. */
  get #connection(): string[] {
    return ["-F", "none", "-o", `ControlPath=${join(this.#dir, "ssh")}`, "-o", "LogLevel=ERROR"];
  }

  #options(key: string): string[] {
    const known = ["-o", `UserKnownHostsFile=${join(this.#dir, "known-hosts")}`, "-o", `HostKeyAlias=${name}`, "-o", "StrictHostKeyChecking=yes"];
    const reached = ["-o", `HostName=${host}`, "-o", `Port=${this.#ports.ssh}`, "-o", "User=root", "-o", "BatchMode=yes"];
    return ["-F", "none", "-o", "LogLevel=ERROR", "-i", key, ...known, ...reached];
  }

  #spawn([file = "", ...args]: readonly string[]): ChildProcess {
    const log = openSync(join(this.#dir, "programs.log"), "a");
    const program = spawn(file, args, { cwd: "/", env: { PATH: searchPath }, stdio: ["ignore", log, log], detached: true });
    this.#programs.push(program);
    return program;
  }
}

/** For the shell at the other end. */
const quoted = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`;
