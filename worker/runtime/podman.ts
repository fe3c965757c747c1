/**
 * Podman as this product uses it: make, start, remove and list containers, get images.
 * Its error texts are turned into our errors here and nowhere else.
 */
import type { Config } from "../../shared/config.ts";
import { SandgateError } from "../../shared/errors.ts";
import { shortOf } from "../../shared/ids.ts";
import type { Logger } from "../../shared/log.ts";
import { SingleFlight } from "../../shared/mutex.ts";
import type { BaseImage } from "../../shared/schemas/messages.ts";
import type { Host } from "./host.ts";
import { type RunResult, run } from "./run.ts";

const podmanTimeoutMs = 120_000;

/** Where the waiting process of a sandbox lies inside it: reaps orphans, does nothing else. */
export const initPath = "/run/.sandgate-init";
/**
 * As `initPath` keeps together what a command starts, for commands in terminals: catatonit starts its command with the
 * signals of job control blocked.
 */
export const reaperPath = "/run/.sandgate-reaper";

/** Linux capabilities a sandbox keeps: enough for package managers and services, nothing about the host. */
const capabilities = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "NET_BIND_SERVICE", "SETGID", "SETUID", "SYS_CHROOT"];

export interface ContainerSpec {
  readonly sandboxId: string;
  readonly image: string;
  readonly cpus: number;
  readonly memoryMiB: number;
  readonly storageGB: number;
  readonly network: "none" | "outbound";
  /** A root file system of ours, in place of the image's. */
  readonly root?: { readonly dir: string; readonly base: BaseImage } | undefined;
}

/** An image, and the folders of its layers, topmost first. */
export interface ImageLayers {
  readonly base: BaseImage;
  readonly lowers: readonly string[];
}

export interface ListedContainer {
  readonly containerId: string;
  readonly sandboxId: string;
  readonly running: boolean;
}

export class Podman {
  readonly #config: Config;
  readonly #host: Host;
  readonly #log: Logger;
  readonly #pulls = new SingleFlight<void>();
  /** By id. */
  readonly #images = new Map<string, ImageLayers>();

  constructor(config: Config, host: Host, log: Logger) {
    this.#config = config;
    this.#host = host;
    this.#log = log;
  }

  /**
   * Makes and starts a container that waits; pulls its image when it is not here. Returns the container's id.
   *
   * @throws {SandgateError} `unprocessable` when the image cannot be had, `insufficient_storage`, `internal_error`.
   */
  async run(workerId: string, spec: ContainerSpec): Promise<string> {
    const image = spec.image === "default" ? this.#config.defaultImage : spec.image;
    const result = await this.#withImage(image, this.#runArguments(workerId, { ...spec, image }));
    if (result.exitCode !== 0) throw failure("start the container", result);
    return lastLine(result.stdout);
  }

  /**
   * An image by its name or id; pulled when it is not here.
   *
   * @throws {SandgateError} `unprocessable` when it cannot be had.
   */
  async image(nameOrId: string): Promise<ImageLayers> {
    const name = nameOrId === "default" ? this.#config.defaultImage : nameOrId;
    const known = this.#images.get(name);
    if (known) return known;
    const result = await this.#withImage(name, ["image", "inspect", "--format", "json", name]);
    if (result.exitCode !== 0) throw failure("look the image up", result);
    const [{ Id, Config, GraphDriver }] = JSON.parse(result.stdout) as [InspectedImage];
    const { UpperDir, LowerDir } = GraphDriver.Data;
    const base = { id: Id, env: Config.Env ?? [], working_dir: Config.WorkingDir || "/", user: Config.User ?? "" };
    const image = { base, lowers: [UpperDir, ...(LowerDir ? LowerDir.split(":") : [])] };
    // A name may mean another image tomorrow; an id never.
    this.#images.set(Id, image);
    return image;
  }

  /** A folder with the whole content of an image that is here. */
  async imageFolder(id: string): Promise<string> {
    const { base, lowers } = await this.image(id);
    if (lowers.length === 1) return lowers[0] as string;
    const result = await this.#podman(["image", "mount", base.id]);
    if (result.exitCode !== 0) throw failure("look into the image", result);
    return lastLine(result.stdout);
  }

  /** The image that a container was made from. */
  async imageOf(containerId: string): Promise<ImageLayers> {
    const result = await this.#podman(["container", "inspect", "--format", "{{.Image}}", containerId]);
    if (result.exitCode !== 0) throw failure("look the container up", result);
    return this.image(result.stdout.trim());
  }

  /** Runs podman; if it lacks the image, once more with it. */
  async #withImage(image: string, args: readonly string[]): Promise<RunResult> {
    const result = await this.#podman(args);
    if (!isImageMissing(result)) return result;
    await this.#pulls.run(image, () => this.#pull(image));
    return this.#podman(args);
  }

  /** Starts a container that stopped, its files as they were. */
  async start(containerId: string): Promise<void> {
    const result = await this.#podman(["start", containerId]);
    if (result.exitCode !== 0) throw failure("start the container again", result);
  }

  /** Stops a container's processes and keeps its files. */
  async stop(containerId: string): Promise<void> {
    const result = await this.#podman(["stop", "--time", "1", "--ignore", containerId]);
    if (result.exitCode !== 0) throw failure("stop the container", result);
  }

  /** Removes a container and its files; one that does not exist is removed already. */
  async remove(nameOrId: string): Promise<void> {
    const result = await this.#podman(["rm", "--force", "--time", "0", "--volumes", "--ignore", nameOrId]);
    if (result.exitCode !== 0) throw failure("remove the container", result);
  }

  /** The containers of this worker, running or not. */
  async list(workerId: string): Promise<ListedContainer[]> {
    const result = await this.#podman(["ps", "--all", "--no-trunc", "--filter", `label=sandgate.worker=${workerId}`, "--format", "json"]);
    if (result.exitCode !== 0) throw failure("list the containers", result);
    const containers = JSON.parse(result.stdout || "[]") as { Id: string; State: string; Labels: Record<string, string> }[];
    return containers.map(({ Id, State, Labels }) => ({
      containerId: Id,
      sandboxId: Labels["sandgate.sandbox"] ?? "",
      running: State === "running",
    }));
  }

  #runArguments(workerId: string, spec: ContainerSpec): string[] {
    return [
      ...["run", "--detach", "--pull", "never", "--runtime", this.#host.runtime, "--name", containerName(spec.sandboxId)],
      ...["--label", `sandgate.worker=${workerId}`, "--label", `sandgate.sandbox=${spec.sandboxId}`],
      ...[
        "--entrypoint",
        JSON.stringify([initPath]),
        "--volume",
        `${this.#host.initBinary}:${initPath}:ro`,
        ...(this.#host.reaperBinary ? ["--volume", `${this.#host.reaperBinary}:${reaperPath}:ro`] : []),
        "--hostname",
        `sandbox-${shortOf(spec.sandboxId)}`,
      ],
      ...["--log-driver", "none", "--restart", "no", "--image-volume", "ignore", "--http-proxy=false", "--systemd", "false"],
      ...["--cap-drop", "all", ...capabilities.flatMap((name) => ["--cap-add", name]), "--security-opt", "no-new-privileges"],
      ...(this.#host.seccompProfile ? ["--security-opt", `seccomp=${this.#host.seccompProfile}`] : []),
      ...this.#limits(spec),
      ...["--network", spec.network === "none" ? "none" : this.#host.network],
      ...(spec.root ? rootArguments(spec.root.dir, spec.root.base) : [spec.image]),
      "-P",
    ];
  }

  #limits(spec: ContainerSpec): string[] {
    const { limits, nofileMax } = this.#host;
    const nofile = Math.min(this.#config.sandboxNofile, nofileMax);
    const flags = ["--ulimit", "core=0:0", "--ulimit", `nofile=${nofile}:${nofile}`];
    if (limits.memory) flags.push("--memory", `${spec.memoryMiB}m`, "--memory-swap", `${spec.memoryMiB}m`);
    if (limits.cpu) flags.push("--cpus", String(spec.cpus));
    // Without a pids controller this bound, shared by all sandboxes of the worker, keeps a fork bomb from the host.
    flags.push(
      ...(limits.pids ? ["--pids-limit", String(this.#config.sandboxPidsMax)] : ["--ulimit", `nproc=${this.#host.nprocShared}:${this.#host.nprocShared}`]),
    );
    if (limits.storage) flags.push("--storage-opt", `size=${spec.storageGB}G`);
    return flags;
  }

  async #pull(image: string): Promise<void> {
    if (!this.#config.imagePull || image.startsWith("localhost/")) throw new SandgateError("unprocessable", `image not found: ${image}`);
    this.#log.info({ event: "image_pull", image }, "pulling an image");
    const result = await this.#podman(["pull", image], this.#config.imagePullTimeoutMs, (line) => this.#log.info({ event: "image_pull", image }, line));
    if (result.exitCode === 0) return;
    this.#log.warn({ event: "image_pull", image, stderr: result.stderr.slice(-2_000) }, "the image could not be pulled");
    if (isOutOfDisk(result.stderr)) throw new SandgateError("insufficient_storage", "the host is out of disk space");
    throw new SandgateError("unprocessable", `image not found or not pullable: ${image}`);
  }

  #podman(args: readonly string[], timeoutMs = podmanTimeoutMs, onStderrLine?: (line: string) => void): Promise<RunResult> {
    return run("podman", args, { timeoutMs, ...(onStderrLine ? { onStderrLine } : {}) });
  }
}

/**
 * A container without an image has nothing of an image's configuration but what it is given. Its working folder is that
 * of commands only: Podman would refuse to start where it has been removed.
 */
function rootArguments(dir: string, { env, user }: BaseImage): string[] {
  const given = [...env.flatMap((pair) => ["--env", pair]), "--workdir", "/", ...(user ? ["--user", user] : [])];
  return [...given, "--rootfs", dir];
}

interface InspectedImage {
  readonly Id: string;
  readonly Config: { readonly Env?: string[]; readonly WorkingDir?: string; readonly User?: string };
  readonly GraphDriver: { readonly Data: { readonly UpperDir: string; readonly LowerDir?: string } };
}

export const containerName = (sandboxId: string): string => `sandgate-${sandboxId}`;

const isImageMissing = (result: RunResult): boolean =>
  result.exitCode === 125 &&
  /image not known|no such image|failed to find image|image not found|does not resolve to an image|unable to find a name|short-name/i.test(result.stderr);

const isOutOfDisk = (stderr: string): boolean => /no space left on device|disk quota exceeded/i.test(stderr);

const lastLine = (text: string): string => text.trim().split("\n").at(-1) ?? "";

function failure(action: string, result: RunResult): SandgateError {
  const cause = new Error(`podman could not ${action} (exit ${result.exitCode}${result.timedOut ? ", timed out" : ""}): ${result.stderr.slice(-2_000)}`);
  if (isOutOfDisk(result.stderr)) return new SandgateError("insufficient_storage", "the host is out of disk space", { cause });
  if (/invalid reference format|repository name must be/i.test(result.stderr))
    return new SandgateError("unprocessable", "the image name is not valid", { cause });
  return new SandgateError("internal_error", `the sandbox host could not ${action}`, { cause });
}
