/** Podman's containers: made, started, stopped, removed and listed. */
import type { BaseImage } from "../../../shared/bus/entries.ts";
import type { Config } from "../../../shared/config.ts";
import { shortOf } from "../../../shared/util/ids.ts";
import { initPath, reaperPath } from "../container/first-process.ts";
import type { Host } from "../host/host.ts";
import { isolationArguments } from "./isolation.ts";
import { checkedId, failure, ImageGone, isImageMissing, lastLine, podman } from "./podman.ts";

export interface ContainerSpec {
  readonly sandboxId: string;
  readonly cpus: number;
  readonly memoryMiB: number;
  readonly storageGB: number;
  readonly network: "none" | "outbound";
}

/** Where a container's files come from: an image by its id (a name never gets here), or a root file system of ours. */
export type ContainerFiles = { readonly imageId: string } | { readonly dir: string; readonly base: BaseImage };

export interface ListedContainer {
  readonly containerId: string;
  readonly sandboxId: string;
  readonly running: boolean;
}

export class Podman {
  readonly #config: Config;
  readonly #host: Host;

  constructor(config: Config, host: Host) {
    this.#config = config;
    this.#host = host;
  }

  /**
   * Makes and starts a container that waits. Returns the container's id.
   *
   * @throws {SandgateError} `ImageGone`, `insufficient_storage`, `internal_error`.
   */
  async run(workerId: string, spec: ContainerSpec, files: ContainerFiles): Promise<string> {
    const result = await podman(this.#runArguments(workerId, spec, files));
    if ("imageId" in files && isImageMissing(result)) throw new ImageGone(files.imageId);
    if (result.exitCode !== 0) throw failure("start the container", result);
    return lastLine(result.stdout);
  }

  /** Starts a container that stopped, its files as they were. */
  async start(containerId: string): Promise<void> {
    const result = await podman(["start", containerId]);
    if (result.exitCode !== 0) throw failure("start the container again", result);
  }

  /** Stops a container's processes and keeps its files. */
  async stop(containerId: string): Promise<void> {
    const result = await podman(["stop", "--time", "1", "--ignore", containerId]);
    if (result.exitCode !== 0) throw failure("stop the container", result);
  }

  /** Removes a container and its files; one that does not exist is removed already. */
  async remove(nameOrId: string): Promise<void> {
    const result = await podman(["rm", "--force", "--time", "0", "--volumes", "--ignore", nameOrId]);
    if (result.exitCode !== 0) throw failure("remove the container", result);
  }

  /** The containers of this worker, running or not. */
  async list(workerId: string): Promise<ListedContainer[]> {
    const result = await podman(["ps", "--all", "--no-trunc", "--filter", `label=sandgate.worker=${workerId}`, "--format", "json"]);
    if (result.exitCode !== 0) throw failure("list the containers", result);
    const containers = JSON.parse(result.stdout || "[]") as { Id: string; State: string; Labels: Record<string, string> }[];
    return containers.map(({ Id, State, Labels }) => ({
      containerId: Id,
      sandboxId: Labels["sandgate.sandbox"] ?? "",
      running: State === "running",
    }));
  }

  #runArguments(workerId: string, spec: ContainerSpec, files: ContainerFiles): string[] {
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
      ...["--log-driver", "none", "--restart", "no", "--image-volume", "ignore", "--http-proxy=false", "--systemd", "false", "--no-healthcheck"],
      ...isolationArguments(this.#host, spec.memoryMiB),
      ...this.#limits(spec),
      ...["--network", spec.network === "none" ? "none" : this.#host.network],
      ...("imageId" in files ? [checkedId(files.imageId)] : rootArguments(files.dir, files.base)),
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
}

/**
 * A container without an image has nothing of an image's configuration but what it is given. Its working folder is that
 * of commands only: Podman would refuse to start where it has been removed. A variable without a value is left out: Podman
 * would give it that of the worker's own variable of this name.
 */
function rootArguments(dir: string, { env, user }: BaseImage): string[] {
  const whole = env.filter((pair) => pair.indexOf("=") > 0);
  const given = [...whole.flatMap((pair) => ["--env", pair]), "--workdir", "/", ...(user ? ["--user", user] : [])];
  return [...given, "--rootfs", dir];
}

export const containerName = (sandboxId: string): string => `sandgate-${sandboxId}`;
