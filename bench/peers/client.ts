/** Programs that `agent.mts` runs in Podman's namespace, as the worker's user. */
import { type ChildProcess, spawn } from "node:child_process";
import { chownSync, copyFileSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { accountEnvironment, inPodmanNamespace } from "../../systemd/base/as-account.ts";
import type { Instance } from "../../systemd/base/instance.ts";

interface Report {
  readonly id: number;
  /** From before the program was started until it had ended and its output had been read. */
  readonly ms: number;
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

const closeTimeoutMs = 30_000;

export class NamespaceAgent {
  /** A folder that the worker's user can write to. */
  readonly scratchDir: string;
  readonly #process: ChildProcess;
  readonly #waiting = new Map<number, PromiseWithResolvers<Report>>();
  readonly #ended = Promise.withResolvers<void>();
  #serial = 0;

  /** Starts the agent with a scratch folder in the installation's data directory. */
  constructor(instance: Instance) {
    this.scratchDir = join(instance.paths.data, "bench");
    mkdirSync(this.scratchDir, { recursive: true, mode: 0o700 });
    const script = join(this.scratchDir, "agent.mts");
    copyFileSync(join(import.meta.dirname, "agent.mts"), script);
    for (const path of [this.scratchDir, script]) chownSync(path, instance.account.uid, instance.account.gid);
    // Without tsx, so that a spawn costs as much as in plain Node.js.
    const node = [join(instance.paths.app, "node_modules/.bin/node"), "--disable-warning=ExperimentalWarning", "--experimental-strip-types"];
    const [file = "", ...args] = inPodmanNamespace(instance, [...node, script]);
    this.#process = spawn(file, args, { cwd: "/", env: accountEnvironment(instance), stdio: ["pipe", "pipe", "inherit"] });
    this.#process.stdin?.on("error", () => {});
    if (this.#process.stdout) createInterface({ input: this.#process.stdout }).on("line", (line) => this.#read(JSON.parse(line) as Report));
    this.#process.once("error", (error) => this.#fail(error)).once("exit", () => this.#fail(new Error("the agent in Podman's namespace has ended")));
  }

  /** Runs a program. @throws {Error} unless it exits with 0 */
  async run(argv: readonly string[]): Promise<Report> {
    const id = this.#serial++;
    const waiting = Promise.withResolvers<Report>();
    this.#waiting.set(id, waiting);
    this.#process.stdin?.write(`${JSON.stringify({ id, argv })}\n`);
    const report = await waiting.promise;
    if (report.exitCode !== 0) throw new Error(`${argv.slice(0, 3).join(" ")} ended with ${report.exitCode}: ${report.stderr.trim().slice(-1_000)}`);
    return report;
  }

  /** Runs a program. @returns how many milliseconds it took @throws {Error} unless it exits with 0 */
  async time(argv: readonly string[]): Promise<number> {
    return (await this.run(argv)).ms;
  }

  /** Waits for running programs, then ends the agent. */
  async close(): Promise<void> {
    this.#process.stdin?.end();
    const timer = setTimeout(() => this.#process.kill("SIGKILL"), closeTimeoutMs);
    await this.#ended.promise;
    clearTimeout(timer);
  }

  #read(report: Report): void {
    this.#waiting.get(report.id)?.resolve(report);
    this.#waiting.delete(report.id);
  }

  #fail(error: Error): void {
    for (const waiting of this.#waiting.values()) waiting.reject(error);
    this.#waiting.clear();
    this.#ended.resolve();
  }
}
