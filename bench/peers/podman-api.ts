/** What somebody would write without Sandgate: calls of Podman's API service over HTTP, as dockerode makes them to Docker's. */
import { type IncomingMessage, request } from "node:http";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { until } from "../../shared/waiting.ts";
import type { Installation } from "../installation.ts";

const root = "http://podman/v4.0.0/libpod";
/** Ends by itself when it has not been called for so long. */
const idleS = 5;
const startPoll = { pollMs: 50, timeoutMs: 10_000 };

export class PodmanApi {
  readonly #socketPath: string;
  readonly #ended: Promise<unknown>;

  private constructor(socketPath: string, ended: Promise<unknown>) {
    this.#socketPath = socketPath;
    this.#ended = ended;
  }

  static async start({ agent, podman }: Pick<Installation, "agent" | "podman">): Promise<PodmanApi> {
    const socket = join(agent.scratchDir, "podman.sock");
    const ended = agent.run([...podman, "system", "service", "--time", String(idleS), `unix://${socket}`]);
    const api = new PodmanApi(socket, ended);
    const isUp = () =>
      api.#call("GET", "/_ping").then(
        () => true,
        () => false,
      );
    if (!(await until(isUp, startPoll))) throw new Error("Podman's service did not start");
    return api;
  }

  /** Runs a command in a container, and reads its output and exit code. @throws {Error} unless it exits with 0 */
  async exec(containerId: string, argv: readonly string[]): Promise<void> {
    const made = await this.#call("POST", `/containers/${containerId}/exec`, { Cmd: argv, AttachStdout: true, AttachStderr: true });
    const { Id } = JSON.parse(made) as { Id: string };
    await this.#call("POST", `/exec/${Id}/start`, { Detach: false });
    const { ExitCode } = JSON.parse(await this.#call("GET", `/exec/${Id}/json`)) as { ExitCode: number };
    if (ExitCode !== 0) throw new Error(`${argv.join(" ")} ended with ${ExitCode}`);
  }

  /** Resolves when the service has ended, which it does by itself. */
  async idle(): Promise<void> {
    await this.#ended;
  }

  async #call(method: "GET" | "POST", path: string, json?: object): Promise<string> {
    const body = json && JSON.stringify(json);
    const headers = body ? { "content-type": "application/json", "content-length": Buffer.byteLength(body) } : {};
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      request(root + path, { method, headers, socketPath: this.#socketPath }, resolve)
        .once("error", reject)
        .end(body);
    });
    const text = (await buffer(answer)).toString("utf8");
    const { statusCode = 0 } = answer;
    if (statusCode < 200 || statusCode >= 300) throw new Error(`${method} ${path} of Podman's service answered ${statusCode}: ${text.slice(0, 500)}`);
    return text;
  }
}
