/** A whole installation for a test: nats-server, workers, gateways, with a data directory and ports of its own. */
import { randomBytes } from "node:crypto";
import { chownSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { distinctFolders, groupFoldersOf } from "../../shared/util/control-groups.ts";
import { accountEnvironment, asAccount, inPodmanNamespace, partEnvironment } from "../../systemd/base/as-account.ts";
import type { Instance } from "../../systemd/base/instance.ts";
import { run } from "../../systemd/base/run.ts";
import { secretsOf } from "../../systemd/supervisor/bus-identities.ts";
import { apiKeyOf, secretFiles } from "../../systemd/supervisor/credentials.ts";
import { configureNats } from "../../systemd/supervisor/nats.ts";
import { headerBytesMax, nodeCommand } from "../../systemd/supervisor/node-parts.ts";
import { identify, isRunning } from "../../systemd/supervisor/processes.ts";
import { untilAbandonedEnd } from "../../worker/runtime/podman/abandoned.ts";
import { busAddress } from "./bus.ts";
import { removeAbandoned } from "./folder.ts";
import { testPort } from "./ports.ts";
import { borrowImages, preparedExecServer, preparedImageId, testInstance } from "./prepare.ts";
import { type ProcessSpec, TestProcess } from "./process.ts";
import { until } from "./until.ts";
import { inContainerStore, TestVolume, unmountInPodman } from "./volume.ts";

/** As Podman lists it. */
interface ListedContainer {
  readonly Id: string;
  readonly State: string;
  readonly Labels: Readonly<Record<string, string>>;
  readonly Pid: number;
}

/** The container of a sandbox. */
interface TestContainer {
  readonly id: string;
  readonly sandboxId: string;
  readonly workerId: string;
  readonly running: boolean;
  /** That of its first program; 0 when it does not run. */
  readonly pid: number;
}

export interface StackOptions {
  readonly name: string;
  readonly workers?: number;
  readonly gateways?: number;
  /** Settings of all parts, such as `{ SANDGATE_EXECUTIONS_PER_SANDBOX: "2" }`. */
  readonly settings?: Readonly<Record<string, string>>;
  /** The environment of the parts in addition to their settings, such as a proxy. */
  readonly environment?: Readonly<Record<string, string>>;
  /** A program with arguments that runs the gateways, or the workers, as their user, such as `env`. */
  readonly gatewaysThrough?: readonly string[];
  readonly workersThrough?: readonly string[];
  /** Where the workers keep what is theirs, their sandboxes included; images are those of all tests. In the folder of the installation when absent. */
  readonly workersDir?: string;
  /** Workers that whoever starts this runs: they only get their secrets. Without others, the stack is there before it is ready. */
  readonly otherWorkers?: readonly string[];
  /** Whether the privileged helper is a process of its own for each connection of a worker, as with systemd, and not this one. */
  readonly helperProcess?: boolean;
}

/** An image that the settings allow but that does not exist. */
export const missingImage = "localhost/no-such-image:latest";

export class Stack implements AsyncDisposable {
  readonly dataDir: string;
  readonly instance: Instance;
  readonly apiKey: string;
  readonly natsUrl: string;
  readonly nats: TestProcess;
  readonly workers: readonly TestProcess[];
  readonly gateways: readonly TestProcess[];
  readonly urls: readonly string[];
  readonly #workerIds: readonly string[];
  readonly #volumes: readonly TestVolume[];

  constructor(parts: {
    dataDir: string;
    instance: Instance;
    apiKey: string;
    natsUrl: string;
    nats: TestProcess;
    workers: TestProcess[];
    gateways: TestProcess[];
    urls: string[];
    workerIds: string[];
    volumes: TestVolume[];
  }) {
    this.dataDir = parts.dataDir;
    this.instance = parts.instance;
    this.apiKey = parts.apiKey;
    this.natsUrl = parts.natsUrl;
    this.nats = parts.nats;
    this.workers = parts.workers;
    this.gateways = parts.gateways;
    this.urls = parts.urls;
    this.#workerIds = parts.workerIds;
    this.#volumes = parts.volumes;
  }

  /** The base URL of the first gateway. */
  get url(): string {
    return this.urls[0] as string;
  }

  get worker(): TestProcess {
    return this.workers[0] as TestProcess;
  }

  get gateway(): TestProcess {
    return this.gateways[0] as TestProcess;
  }

  /** Runs podman as the worker does, on its images; returns its standard output. */
  podman(...args: string[]): Promise<string> {
    return run(inPodmanNamespace(this.instance, ["podman", ...args]), { env: accountEnvironment(this.instance), cwd: "/" });
  }

  /** The same on the containers of a worker. */
  containerPodman(args: readonly string[], workerId = this.#workerIds[0] ?? ""): Promise<string> {
    return this.podman(...inContainerStore(this.instance, workerId), ...args);
  }

  /** Removes the files of a sandbox of the first worker, which does not run. */
  async removeFiles(sandboxId: string): Promise<void> {
    const { SANDGATE_VOLUME_DIR: volume, SANDGATE_WORKER_ID: id = "", SANDGATE_DATA_DIR = "" } = this.worker.spec.env;
    const dir = join(volume ? join(volume, id) : join(SANDGATE_DATA_DIR, "worker"), "roots", sandboxId);
    const remove = 'umount --recursive --lazy --quiet "$1"/*; rm -r "$1"';
    await run(inPodmanNamespace(this.instance, ["sh", "-c", remove, "sh", dir]), { env: accountEnvironment(this.instance), cwd: "/" });
  }

  /** The containers of this stack's workers, all states. */
  async containers(): Promise<TestContainer[]> {
    const listed = async (workerId: string) => {
      const list = ["ps", "--all", "--no-trunc", "--filter", `label=sandgate.worker=${workerId}`, "--format", "json"];
      const lists = await Promise.all([this.podman(...list), this.containerPodman(list, workerId)]);
      return lists.flatMap((list) => JSON.parse(list || "[]") as ListedContainer[]).map((one) => ({ ...one, workerId }));
    };
    const found = (await Promise.all(this.#workerIds.map(listed))).flat();
    return found.map(({ Id, State, Labels, Pid, workerId }) => ({
      id: Id,
      sandboxId: Labels["sandgate.sandbox"] ?? "",
      workerId,
      running: State === "running",
      pid: Pid,
    }));
  }

  /** The container of a sandbox. @throws {Error} if there is none */
  async containerOf(sandboxId: string): Promise<TestContainer> {
    const found = (await this.containers()).find((container) => container.sandboxId === sandboxId);
    if (!found) throw new Error(`${sandboxId} has no container`);
    return found;
  }

  /**
   * Ends what runs in a container, as somebody who uses podman by hand does. Podman may say that it failed, and yet have ended it: a
   * worker that is quicker runs it again before podman has cleaned up, and on a busy machine podman does not wait for the monitor.
   */
  async endContainer({ id, pid, workerId }: TestContainer, action: readonly string[] = ["stop", "--time", "0"]): Promise<void> {
    const first = identify(pid);
    let said = "";
    await this.containerPodman([...action, id], workerId).catch((error: Error) => (said = error.message));
    await until(`the end of container ${id}: ${said}`, () => !first || !isRunning(first));
  }

  /** Removes a container behind its worker's back. Podman gives up after five seconds where a machine is too busy to end it sooner. */
  async removeContainer({ id, workerId }: TestContainer): Promise<void> {
    const remove = ["rm", "--force", "--ignore", "--time", "0", id];
    await until(`the removal of container ${id}`, () => this.containerPodman(remove, workerId).then(() => true));
  }

  /** Resolves when a gateway says that calls can be carried out, and knows the workers and gateways that run now, not those before them. */
  async ready(url = this.url): Promise<void> {
    const gateway = this.gateways[this.urls.indexOf(url)] as TestProcess;
    const others = [...this.workers, ...this.gateways].filter((part) => part !== gateway);
    const isKnown = ({ readyLine }: TestProcess): boolean =>
      !readyLine || gateway.linesSinceStart.some((line) => line.includes('"peer_come"') && line.includes(peerOf(readyLine)));
    await until("the stack is ready", async () => (await fetch(`${url}/readyz`)).ok && others.every(isKnown));
  }

  /** Mounts the volumes anew, when nothing runs: as a start does after the machine was restarted. */
  async remount(): Promise<void> {
    for (const id of this.#workerIds) await unmountInPodman(this.instance, id);
    for (const volume of this.#volumes) await volume.remount();
  }

  /** Ends everything and removes what it made. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.gateways, ...this.workers].map((part) => part.kill9()));
    await this.nats.kill9();
    for (const id of this.#workerIds) await untilAbandonedEnd(id);
    const labels = this.#workerIds.flatMap((id) => [`sandgate.worker=${id}`, `sandgate.holder=${id}`]);
    for (const label of labels) await this.podman("rm", "--force", "--time", "0", "--filter", `label=${label}`);
    for (const id of this.#workerIds) await this.containerPodman(["rm", "--all", "--force", "--time", "0"], id);
    for (const id of this.#workerIds) await unmountInPodman(this.instance, id);
    for (const id of this.#workerIds) await removeAbandoned(join(this.instance.runtimeDir, "sandgate", id));
    await until("nothing runs in the groups of its sandboxes", () => {
      for (const id of this.#workerIds) removeWorkerGroups(this.instance.account.uid, id);
      return true;
    });
    for (const volume of this.#volumes) await volume[Symbol.asyncDispose]();
    await removeAbandoned(this.dataDir);
  }
}

/** Starts an installation and resolves when it is ready. */
export async function startStack(options: StackOptions): Promise<Stack> {
  const {
    name,
    workers = 1,
    gateways = 1,
    settings = {},
    environment = {},
    gatewaysThrough = [],
    workersThrough = [],
    workersDir,
    otherWorkers = [],
  } = options;
  const dataDir = mkdtempSync(join(tmpdir(), `sandgate-${name}-`));
  const instance = await testInstance(dataDir, settings);
  if (workersDir !== undefined) borrowImages(instance);
  const owned = (dir: string): string => {
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    chownSync(dir, instance.account.uid, instance.account.gid);
    return dir;
  };
  const workerIds = Array.from({ length: workers }, (_, index) => `test-${randomBytes(6).toString("hex")}-${index}`);
  const nats = await configureNats(instance, [...workerIds, ...otherWorkers]);
  const apiKey = await apiKeyOf(instance);
  const common = {
    // Without warm containers, a test finds only the containers that it created.
    SANDGATE_POOL_SIZE: "0",
    // All tests call from one address.
    SANDGATE_AUTH_FAILURES_PER_ADDRESS: "100000",
    SANDGATE_SIGN_UPS_PER_ADDRESS: "100000",
    // Hashing takes most of the time of a log-in, and tests log in hundreds of times.
    SANDGATE_TEST_PASSWORD_COST: "8",
    SANDGATE_METRICS_PORT: "0",
    SANDGATE_LOCAL_IMAGES: missingImage,
    SANDGATE_EXEC_SERVER: preparedExecServer(),
    SANDGATE_DEFAULT_IMAGE_ID: (await preparedImageId()) ?? "",
    SANDGATE_LINES_DIR: instance.paths.lines,
    ...environment,
    ...settings,
    SANDGATE_STORAGE_DIR: instance.paths.storage,
  };
  const secrets = {
    worker: await secretFiles(instance, "worker", {}),
    gateway: await secretFiles(instance, "gateway", { bootstrapApiKey: apiKey }),
  };
  const ports = await Promise.all(Array.from({ length: gateways }, testPort));
  type Command = (argv: string[]) => string[];
  const part = (partName: "worker" | "gateway", command: Command, extra: Record<string, string>, volume?: TestVolume): TestProcess => {
    const env = partName === "worker" ? accountEnvironment(instance) : partEnvironment(instance, partName);
    const all = { ...env, ...common, SANDGATE_DATA_DIR: dataDir, ...secrets[partName], ...extra };
    const spec = nodePart(instance, partName, join(instance.paths.logs, `${partName}${Object.values(extra)[0]}.log`), command, all);
    return new TestProcess({ ...spec, ...volume?.serve });
  };
  // The worker's own folder may be on a file system of a test, to be filled; a volume elsewhere would keep sandboxes from doing so.
  const volumes = workersDir === undefined ? await TestVolume.makeAll(instance, dataDir, workerIds) : [];
  if (options.helperProcess)
    await Promise.all(volumes.map((volume, index) => volume.listen(() => stack.workers[index]?.pid ?? 0, settings.SANDGATE_TEST_FAULT)));
  const stack: Stack = new Stack({
    dataDir,
    instance,
    apiKey,
    natsUrl: busAddress({ ...nats.gateway, SANDGATE_NATS_NKEY_FILE: secretsOf(instance).root }),
    nats: new TestProcess({ ...nats.spec, logFile: join(instance.paths.logs, "nats.log"), isReady: (line) => line.includes("Server is ready") }),
    workers: workerIds.map((id, index) => {
      const volume = volumes[index];
      const extra = { SANDGATE_WORKER_ID: id, ...nats.worker(id), SANDGATE_DATA_DIR: owned(join(workersDir ?? dataDir, id)), ...volume?.settings };
      return part("worker", (argv) => inPodmanNamespace(instance, [...workersThrough, ...argv]), extra, volume);
    }),
    gateways: ports.map((port) =>
      part("gateway", (argv) => asAccount(instance.accounts.gateway, [...gatewaysThrough, ...argv]), {
        SANDGATE_PORT: String(port),
        ...nats.gateway,
        NODE_COMPILE_CACHE: compiledGateway(instance),
        UWS_HTTP_MAX_HEADERS_SIZE: headerBytesMax,
      }),
    ),
    urls: ports.map((port) => `http://127.0.0.1:${port}`),
    workerIds,
    volumes,
  });
  try {
    await stack.nats.start();
    await Promise.all([...stack.workers, ...stack.gateways].map((process) => process.start()));
    if (workers > 0) await Promise.all(stack.urls.map((url) => stack.ready(url)));
    return stack;
  } catch (error) {
    await stack[Symbol.asyncDispose]();
    throw error;
  }
}

/** Compiled code for the gateways of all installations of a run; in a folder of its own each would be compiled anew. */
function compiledGateway({ accounts: { gateway } }: Instance): string {
  const dir = join(tmpdir(), "gateway-compiled");
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  chownSync(dir, gateway.uid, gateway.gid);
  return dir;
}

/** Those of a worker that was killed, which could not remove them. */
function removeWorkerGroups(uid: number, workerId: string): void {
  const folders = distinctFolders(groupFoldersOf(uid)?.folders ?? {}).map((folder) => join(folder, workerId));
  for (const folder of folders.filter(existsSync)) {
    for (const entry of readdirSync(folder, { withFileTypes: true })) if (entry.isDirectory()) rmdirSync(join(folder, entry.name));
    rmdirSync(folder);
  }
}

/** The peer name of a process. */
export function peerOf(readyLine: string): string {
  const { peer, gateway } = JSON.parse(readyLine) as { peer?: string; gateway?: string };
  return peer ?? gateway ?? "";
}

function nodePart(
  instance: Instance,
  name: "worker" | "gateway",
  logFile: string,
  command: (argv: string[]) => string[],
  env: Record<string, string>,
): ProcessSpec {
  return {
    name,
    argv: command(nodeCommand(instance, `${name}/main.ts`)),
    env,
    cwd: instance.paths.app,
    logFile,
    isReady: (line) => line.includes('"event":"ready"'),
  };
}
