/** A whole installation as `npm start` runs it, with a data directory of its own and the image store of all tests. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { appDir } from "../../shared/programs.mjs";
import { accountEnvironment, inPodmanNamespace } from "../../systemd/base/as-account.ts";
import type { Instance } from "../../systemd/base/instance.ts";
import { run } from "../../systemd/base/run.ts";
import { identify, isRunning, type ProcessId, signalProcess } from "../../systemd/supervisor/processes.ts";
import { removeAbandoned, temporaryFolder } from "./folder.ts";
import { testPort } from "./ports.ts";
import { borrowDefaultImage, testInstance } from "./prepare.ts";
import { until } from "./until.ts";
import { freeVolume, inContainerStore, unmountInPodman } from "./volume.ts";

export const startMs = 300_000;

export interface NamedProcess {
  readonly name: string;
  readonly process: ProcessId;
}

/** What `npm start` has said that its host has (✓) or lacks (!): name, value and note of each check. */
export function checksIn(said: string, mark: "✓" | "!"): string[][] {
  const lines = said.split(/\r?\n/).filter((line) => line.startsWith(`  ${mark} `));
  return lines.map((line) => line.slice(4).split(/ {2,}/));
}

export class NpmStart implements AsyncDisposable {
  readonly instance: Instance;
  readonly url: string;
  /** The environment of `npm start`, and of commands that are to find this installation. */
  readonly settings: Readonly<Record<string, string>>;
  #starter: ChildProcess | undefined;
  #workerId = "";
  #said = "";

  private constructor(instance: Instance, port: number, settings: Readonly<Record<string, string>>) {
    this.instance = instance;
    this.url = `http://127.0.0.1:${port}`;
    this.settings = settings;
  }

  static async prepare(name: string, settings: Readonly<Record<string, string>> = {}): Promise<NpmStart> {
    const dataDir = temporaryFolder(name, 0o755).path;
    const instance = await testInstance(dataDir, {});
    const port = await testPort();
    return new NpmStart(instance, port, {
      SANDGATE_USER: instance.config.user,
      SANDGATE_DATA_DIR: dataDir,
      SANDGATE_STORAGE_DIR: instance.paths.storage,
      SANDGATE_PORT: String(port),
      SANDGATE_METRICS_PORT: "0",
      SANDGATE_POOL_SIZE: "0",
      ...settings,
    });
  }

  get apiKey(): string {
    return readFileSync(this.instance.paths.apiKey, "utf8").trim();
  }

  /** What it said at its last start that its host has (✓) or lacks (!). */
  checks(mark: "✓" | "!"): string[][] {
    return checksIn(this.#said, mark);
  }

  /** Resolves with the supervisor when everything is ready. */
  async start(changes: Readonly<Record<string, string>> = {}): Promise<ProcessId> {
    await borrowDefaultImage(this.instance);
    const own = Object.entries(process.env).filter(([name]) => !name.startsWith("SANDGATE_"));
    const env = { ...Object.fromEntries(own), ...this.settings, ...changes };
    const child = spawn("/bin/sh", [join(appDir, "systemd/start")], { env, stdio: ["ignore", "pipe", "pipe"] });
    this.#starter = child;
    this.#said = "";
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (text: string) => (this.#said += text));
    const ended = once(child, "exit").then(() => Promise.reject(new Error(`npm start ended:\n${this.#said}`)));
    ended.catch(() => {});
    const ready = until("npm start is ready", () => this.#said.includes("Sandgate is ready."), startMs);
    await Promise.race([ready.catch((error: Error) => Promise.reject(new Error(`${error.message}\n${this.#said}`))), ended]);
    const supervisor = identify(child.pid ?? 0);
    if (!supervisor) throw new Error(`npm start has ended:\n${this.#said}`);
    this.#workerId = readFileSync(join(this.instance.paths.supervisor, "worker-id"), "utf8").trim();
    return supervisor;
  }

  /** The parts that the supervisor has noted. */
  parts(): NamedProcess[] {
    const folder = this.instance.paths.supervisor;
    if (!existsSync(folder)) return [];
    const files = readdirSync(folder).filter((file) => file.endsWith(".process.json"));
    return files.map((file) => ({ name: file.split(".", 1)[0] ?? "", process: JSON.parse(readFileSync(join(folder, file), "utf8")) as ProcessId }));
  }

  podman(...args: string[]): Promise<string> {
    return run(inPodmanNamespace(this.instance, ["podman", ...args]), { env: accountEnvironment(this.instance), cwd: "/" });
  }

  /** Runs podman on the containers of its worker. */
  containerPodman(...args: string[]): Promise<string> {
    return this.podman(...inContainerStore(this.instance, this.#workerId), ...args);
  }

  /** The ids of its containers. */
  async containers(status?: string): Promise<string[]> {
    const filters = [`label=sandgate.worker=${this.#workerId}`, ...(status ? [`status=${status}`] : [])].flatMap((filter) => ["--filter", filter]);
    return (await this.containerPodman("ps", "--all", "--quiet", "--no-trunc", ...filters)).split("\n").filter(Boolean);
  }

  /** Ends everything and removes all that it has on disk, as when the machine is lost. */
  async destroy(): Promise<void> {
    const parts = this.parts();
    // The parts end with it. A worker that is killed as well would leave its sandboxes mounted.
    this.#starter?.kill("SIGKILL");
    const areGone = (): boolean => !parts.some(({ process }) => isRunning(process));
    await until("its parts are gone", areGone, startMs).catch(() => parts.forEach(({ process }) => signalProcess(process, "SIGKILL")));
    if (this.#workerId) {
      for (const id of await this.containers()) await this.containerPodman("rm", "--force", "--time", "0", id);
      await unmountInPodman(this.instance, this.#workerId);
      await removeAbandoned(join(this.instance.runtimeDir, "sandgate", this.#workerId));
    }
    await freeVolume(this.instance.paths);
    await removeAbandoned(this.instance.paths.data);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.destroy();
  }
}
