/** Creates, starts, stops, removes and lists Podman's containers. */
import type { BaseImage } from "../../../shared/bus/entries.ts";
import type { Config } from "../../../shared/config.ts";
import { shortOf } from "../../../shared/util/ids.ts";
import { initPath, reaperPath } from "../container/first-process.ts";
import type { Host } from "../host/host.ts";
import { run } from "../process/run.ts";
import { isolationArguments } from "./isolation.ts";
import { failure, lastLine, podman } from "./podman.ts";

const deleteTimeoutMs = 10_000;

export interface ContainerSpec {
  readonly sandboxId: string;
  readonly cpus: number;
  readonly memoryMiB: number;
  readonly network: "none" | "outbound";
}

/** The mounted files of a container, and the image below them. */
export interface ContainerFiles {
  readonly dir: string;
  readonly base: BaseImage;
}

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
   * Creates and starts an idle container. Returns the container's id.
   *
   * @throws {SandgateError} `insufficient_storage`, `internal_error`.
   */
  async run(workerId: string, spec: ContainerSpec, files: ContainerFiles): Promise<string> {
    const result = await podman(this.#runArguments(workerId, spec, files));
    if (result.exitCode !== 0) throw failure("start the container", result);
    return lastLine(result.stdout);
  }

  /** Starts a stopped container with its files unchanged. */
  async start(containerId: string): Promise<void> {
    let result = await podman(["start", containerId]);
    // When everything was killed at once, nobody has told the OCI runtime that the container has ended.
    if (result.exitCode !== 0 && /container .*already exists/.test(result.stderr)) {
      await run(this.#host.runtime, ["delete", "--force", containerId], { timeoutMs: deleteTimeoutMs });
      result = await podman(["start", containerId]);
    }
    if (result.exitCode !== 0) throw failure("start the container again", result);
  }

  /** Stops a container's processes and keeps its files. */
  async stop(containerId: string): Promise<void> {
    const result = await podman(["stop", "--time", "1", "--ignore", containerId]);
    if (result.exitCode !== 0) throw failure("stop the container", result);
  }

  /** Removes a container and its files; does nothing if it does not exist. */
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
      ...["--label", `sandgate.worker=${workerId}`, "--label", `sandgate.sandbox=${spec.sandboxId}`, "--label", `sandgate.image=${files.base.id}`],
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
      ...rootArguments(files),
      "-P",
    ];
  }

  #limits(spec: ContainerSpec): string[] {
    const { limits, groups, controlGroups, nofileMax } = this.#host;
    const byPodman = groups === undefined;
    const nofile = Math.min(this.#config.sandboxNofile, nofileMax);
    const flags = ["--ulimit", "core=0:0", "--ulimit", `nofile=${nofile}:${nofile}`];
    // On cgroup v1, it has no groups without root.
    if (!byPodman && controlGroups === "v2") flags.push("--cgroups", "disabled");
    if (limits.memory && byPodman) flags.push("--memory", `${spec.memoryMiB}m`, "--memory-swap", `${spec.memoryMiB}m`);
    if (limits.cpu && byPodman) flags.push("--cpus", String(spec.cpus));
    if (limits.pids && byPodman) flags.push("--pids-limit", String(this.#config.sandboxPidsMax));
    // Without a pids controller, this limit, shared by all sandboxes of the worker, protects the host from a fork bomb.
    if (!limits.pids) flags.push("--ulimit", `nproc=${this.#host.nprocShared}:${this.#host.nprocShared}`);
    return flags;
  }
}

/**
 * A container without an image gets only the configuration passed here. The image's working directory is set for commands only,
 * since Podman would not start the container if it had been removed. Variables without a value are left out, because Podman
 * would fill them from the worker's environment.
 */
function rootArguments({ dir, base: { env, user } }: ContainerFiles): string[] {
  const whole = env.filter((pair) => pair.indexOf("=") > 0);
  const given = [...whole.flatMap((pair) => ["--env", pair]), "--workdir", "/", ...(user ? ["--user", user] : [])];
  return [...given, "--rootfs", dir];
}

export const containerName = (sandboxId: string): string => `sandgate-${sandboxId}`;
