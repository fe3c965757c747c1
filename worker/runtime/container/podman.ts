/**
 * Podman as this product uses it: make, start, remove and list containers.
 * Its error texts are turned into our errors here and nowhere else.
 */

import type { BaseImage } from "../../../shared/bus/messages.ts";
import type { Config } from "../../../shared/config.ts";
import { SandgateError } from "../../../shared/errors.ts";
import { shortOf } from "../../../shared/util/ids.ts";
import { isImageId } from "../../../shared/util/image.ts";
import type { Host } from "../host.ts";
import { isOutOfDisk, type RunResult, run } from "../process/run.ts";
import { isolationArguments } from "./isolation.ts";

const podmanTimeoutMs = 120_000;

/** Where the waiting process of a sandbox lies inside it: reaps orphans, does nothing else. */
export const initPath = "/run/.sandgate-init";
/**
 * As `initPath` keeps together what a command starts, for commands in terminals: catatonit starts its command with the
 * signals of job control blocked.
 */
export const reaperPath = "/run/.sandgate-reaper";

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

/** Runs podman to its end; how it ended is the result. */
export function podman(args: readonly string[]): Promise<RunResult> {
  return run("podman", args, { timeoutMs: podmanTimeoutMs });
}

/** An image that was here is gone. */
export class ImageGone extends SandgateError {
  constructor(id: string) {
    super("unprocessable", "image not found: it is not on this worker any more", { cause: new Error(id), reason: "image_not_found" });
  }
}

/** The last check before Podman, which takes much more for an image than ids. @throws {SandgateError} `internal_error`. */
export function checkedId(id: string): string {
  if (!isImageId(id)) throw new SandgateError("internal_error", "the sandbox host was given no id of an image", { cause: new Error(id.slice(0, 100)) });
  return id;
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

/** Whether podman failed because there is no such image. */
export const isImageMissing = (result: RunResult): boolean =>
  result.exitCode === 125 && /image not known|no such image|failed to find image|image not found|does not resolve to an image/i.test(result.stderr);

export const lastLine = (text: string): string => text.trim().split("\n").at(-1) ?? "";

/** What podman could not do, as an error for the caller. */
export function failure(action: string, result: RunResult): SandgateError {
  const cause = new Error(`podman could not ${action} (exit ${result.exitCode}${result.timedOut ? ", timed out" : ""}): ${result.stderr.slice(-2_000)}`);
  if (isOutOfDisk(result.stderr)) return new SandgateError("insufficient_storage", "the host is out of disk space", { cause });
  return new SandgateError("internal_error", `the sandbox host could not ${action}`, { cause });
}
