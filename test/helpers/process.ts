/** A real process of the product, which a test can start, watch, kill and restart. */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { appendFileSync } from "node:fs";
import { createInterface } from "node:readline";
import type { Duplex } from "node:stream";
import { type PartSpec, servedFd } from "../../systemd/supervisor/part.ts";

export interface ProcessSpec {
  readonly name: string;
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  readonly logFile: string;
  /** Whether a line of output says that the process is ready. */
  readonly isReady: (line: string) => boolean;
  /** Serves its descriptor 3, as for a part. */
  readonly serve?: PartSpec["serve"];
}

const readyTimeoutMs = 60_000;
const startingCharsMax = 200;

export class TestProcess {
  readonly spec: ProcessSpec;
  #child: ChildProcess | undefined;
  #readyLine: string | undefined;
  readonly #lines: string[] = [];
  #startedAt = 0;

  constructor(spec: ProcessSpec) {
    this.spec = spec;
  }

  get pid(): number {
    if (!this.#child?.pid) throw new Error(`${this.spec.name} does not run`);
    return this.#child.pid;
  }

  /** What the process has written since it was first started. */
  get lines(): readonly string[] {
    return this.#lines;
  }

  /** What it has written since it was last started. */
  get linesSinceStart(): readonly string[] {
    return this.#lines.slice(this.#startedAt);
  }

  /** What the process that runs now has said when it was ready. */
  get readyLine(): string | undefined {
    return this.#child?.exitCode === null && this.#child.signalCode === null ? this.#readyLine : undefined;
  }

  /** How it ended last by itself; null while it runs, or when it was killed. */
  get exitCode(): number | null {
    return this.#child?.exitCode ?? null;
  }

  /** Starts the process and resolves when it is ready. */
  async start(): Promise<void> {
    const { argv, env, cwd, name, serve } = this.spec;
    const [file = "", ...args] = argv;
    const child = spawn(file, args, { env, cwd, detached: true, stdio: ["pipe", "pipe", "pipe", ...(serve ? ["pipe" as const] : [])] });
    if (child.pid !== undefined) serve?.(child.stdio[servedFd] as Duplex, child.pid);
    this.#child = child;
    this.#readyLine = undefined;
    this.#startedAt = this.#lines.length;
    child.stdin?.on("error", () => {});
    const ready = Promise.withResolvers<void>();
    for (const stream of [child.stdout, child.stderr]) {
      if (stream) createInterface({ input: stream }).on("line", (line) => this.#read(line, ready.resolve));
    }
    child.once("error", ready.reject);
    child.once("exit", (code, signal) => ready.reject(new Error(`${name} ended (${signal ?? code}):\n${this.#lines.slice(-10).join("\n")}`)));
    const notReady = (): Error => new Error(`${name} is not ready:\n${this.#lines.slice(-10).join("\n")}\n${startingPrograms()}`);
    const timer = setTimeout(() => ready.reject(notReady()), readyTimeoutMs);
    await ready.promise.finally(() => clearTimeout(timer));
  }

  /** `kill -9`; resolves when the process is gone. */
  async kill9(): Promise<void> {
    await this.#end("SIGKILL");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill9();
  }

  /** SIGTERM; resolves when the process is gone. */
  async stop(): Promise<void> {
    await this.#end("SIGTERM");
  }

  /** Sends a signal such as SIGSTOP and SIGCONT. */
  signal(name: NodeJS.Signals): void {
    this.#child?.kill(name);
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, "exit");
    child.kill(signal);
    await exited;
  }

  #read(line: string, ready: () => void): void {
    this.#lines.push(line);
    appendFileSync(this.spec.logFile, `${line}\n`);
    if (!this.spec.isReady(line)) return;
    this.#readyLine = line;
    ready();
  }
}

/** What a start of a part may be waiting for: programs of this machine, how long each has run, and in which call of the kernel it is. */
function startingPrograms(): string {
  const lines = execFileSync("ps", ["-eo", "pid,ppid,etimes,stat,wchan:24,args", "--forest"], { encoding: "utf8" }).split("\n");
  const isOfStart = (line: string): boolean => /run-as-worker|podman|conmon|nsenter|worker-main|gateway-main|nats-server/.test(line);
  return lines
    .filter(isOfStart)
    .map((line) => line.slice(0, startingCharsMax))
    .join("\n");
}
