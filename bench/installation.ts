/** The environment of every scenario: a real installation, a client of its API, and Podman for comparison. */
import { join } from "node:path";
import { loadConfig } from "../shared/config.ts";
import type { CreateBody } from "../shared/schemas/sandboxes.ts";
import { pause } from "../shared/waiting.ts";
import { prefer } from "../systemd/supervisor/priority.ts";
import { type Stack, startStack } from "../test/helpers/stack.ts";
import { inContainerStore } from "../test/helpers/volume.ts";
import { HttpClient } from "./http.ts";
import { NamespaceAgent } from "./peers/client.ts";

/** Containers that wait to become sandboxes: as many as there are by default, and no more after a burst of creates, so that it is known when all are there again. */
const { poolSize, poolSizeMax } = loadConfig({});
const poolOf = (size: number): Readonly<Record<string, string>> => ({ SANDGATE_POOL_SIZE: String(size), SANDGATE_POOL_SIZE_MAX: String(size) });
/** Settings with which every sandbox is made from nothing. */
export const withoutPool = poolOf(0);
/** Settings with which the pool grows with the demand, as it does by default. */
export const growingPool = { SANDGATE_POOL_SIZE_MAX: String(poolSizeMax) };

/** JavaScript runs at its speed once it was compiled for what it is used for, which takes some thousand calls. */
const warmingCalls = 2_000;

/** What the pool takes for the containers of a round. */
const refillMs = 250;

/** Has the kernel prefer the parts, as `npm start` does. */
export function preferParts({ nats, workers, gateways }: Stack): void {
  for (const { pid } of [nats, ...workers, ...gateways]) prefer(pid);
}

/** What a sandbox has that others have not. */
export type Wanted = Pick<CreateBody, "resources" | "isolation">;

/** A sandbox and its container. */
export interface Sandbox {
  readonly id: string;
  readonly containerId: string;
}

export class Installation {
  readonly stack: Stack;
  readonly api: HttpClient;
  readonly agent: NamespaceAgent;
  /** The command line of podman on the containers of sandboxes, which are apart from its others. */
  readonly podman: readonly string[];

  private constructor(stack: Stack) {
    this.stack = stack;
    this.api = new HttpClient(stack.url, stack.apiKey);
    this.agent = new NamespaceAgent(stack.instance);
    this.podman = ["podman", ...inContainerStore(stack.instance, stack.worker.spec.env.SANDGATE_WORKER_ID ?? "")];
  }

  /** @param settings beside those that all measurements have */
  static async start(settings: Readonly<Record<string, string>> = {}): Promise<Installation> {
    const stack = await startStack({
      name: "bench",
      settings: {
        ...poolOf(poolSize),
        SANDGATE_SNAPSHOT_ARCHIVE: "false",
        SANDGATE_SESSIONS_PER_SANDBOX: "64",
        SANDGATE_SESSIONS_PER_ACCOUNT: "1024",
        ...settings,
      },
    });
    preferParts(stack);
    // A client on another machine does not wait for a CPU of this one.
    prefer(process.pid);
    return new Installation(stack);
  }

  /** Creates a sandbox of the default image, runs `work` with it, and deletes it. @param wanted the defaults when absent */
  async withSandbox<T>(work: (sandbox: Sandbox) => Promise<T>, wanted?: Wanted): Promise<T> {
    const id = await this.create(wanted);
    try {
      const container = (await this.stack.containers()).find(({ sandboxId }) => sandboxId === id);
      if (!container) throw new Error(`the sandbox ${id} has no container`);
      return await work({ id, containerId: container.id });
    } finally {
      await this.delete(id);
    }
  }

  /** Creates a sandbox of the default image. Resolves with its id when it is running. */
  async create(wanted: Wanted = {}): Promise<string> {
    const json = { image: "default", ...wanted };
    return (await this.api.json<{ id: string }>({ method: "POST", path: "/v1/sandboxes/create", json })).id;
  }

  /** Has the parts do what they do most often until they are as fast as in an installation that has been used for a while. */
  async warm(): Promise<void> {
    await this.withSandbox(async ({ id }) => {
      for (let call = 0; call < warmingCalls; call++) await this.execute(id, "true");
    });
  }

  /** Resolves when there has been time to fill the pool again, so that neither the next create nor another contender pays for that. */
  async settled(): Promise<void> {
    await pause(refillMs);
  }

  async delete(id: string): Promise<void> {
    await this.api.json({ method: "DELETE", path: `/v1/sandboxes/${id}/delete` });
  }

  /** Runs a command. Resolves with what it printed. @param timeoutS the default when absent @throws {Error} if it fails */
  async execute(id: string, command: string, timeoutS?: number): Promise<string> {
    const json = { command, ...(timeoutS ? { timeout: timeoutS } : {}) };
    const result = await this.api.json<{ exit_code: number; stdout: string }>({ method: "POST", path: `/v1/sandboxes/${id}/execute`, json });
    if (result.exit_code !== 0) throw new Error(`${command} ended with ${result.exit_code}`);
    return result.stdout;
  }

  /** The OCI runtime with which Podman started the container. */
  async runtimeOf({ containerId }: Sandbox): Promise<string> {
    return (await this.agent.run([...this.podman, "inspect", "--format", "{{.OCIRuntime}}", containerId])).stdout.trim();
  }

  /** The path of a copy of an OCI runtime, for comparison: it starts as it does without Sandgate, whose workers mount theirs read-only. */
  async plainRuntime(name: string): Promise<string> {
    const copy = join(this.agent.scratchDir, name);
    await this.agent.run(["sh", "-c", 'test -e "$1" || cp "$(command -v "$0")" "$1"', name, copy]);
    return copy;
  }

  /** Stops everything, and removes the sandboxes and the containers created for comparison. */
  async stop(): Promise<void> {
    this.api.close();
    // First, so that no container appears after they have been listed for removal.
    await this.agent.close();
    await this.stack[Symbol.asyncDispose]();
  }
}
