/** One supervised process: starts it, reads its output, restarts it when it dies, and stops it on request. */
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import type { Duplex, Readable, Writable } from "node:stream";
import { backoffMs } from "../../shared/waiting.ts";
import { forgetProcess, noteProcess } from "./leftovers.ts";
import { readLines } from "./lines.ts";
import { LogFile } from "./log-file.ts";
import type { LogLine } from "./log-line.ts";
import { prefer } from "./priority.ts";
import { identify } from "./processes.ts";

/** EX_CONFIG: a restart would fail in the same way. */
const configurationError = 78;

/** The pauses before the restarts of a part that keeps dying. A run of `healthyMs` makes them short again. */
const restarts = { firstMs: 500, maxMs: 15_000 };
const healthyMs = 30_000;

/** Describes how to run a part. */
export interface PartSpec {
  readonly name: string;
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  readonly parse: (line: string) => LogLine;
  readonly logFile: string;
  /** The folder in which its process id is recorded. */
  readonly notes: string;
  /** Serves the part over a connection of its own, which is its descriptor 3; called at each start. */
  readonly serve?: (connection: Duplex, pid: number) => void;
}

/** The number of the descriptor that `serve` provides. */
export const servedFd = 3;

/** The events of a part. */
export interface PartListener {
  onLine(part: Part, line: LogLine): void;
  /** The process ended unexpectedly and is restarted after `pauseMs`. */
  onDeath(part: Part, how: string, pauseMs: number): void;
  /** The process ended and must not be restarted. */
  onRefusal(part: Part, how: string): void;
}

type Child = ChildProcessByStdio<Writable, Readable, Readable>;

export class Part {
  readonly spec: PartSpec;
  readonly #listener: PartListener;
  readonly #log: LogFile;
  /** How often it has died since it was healthy. */
  #deaths = 0;
  #child: Child | undefined;
  #restart: NodeJS.Timeout | undefined;
  #stopping = false;

  constructor(spec: PartSpec, listener: PartListener) {
    this.spec = spec;
    this.#listener = listener;
    this.#log = new LogFile(spec.logFile);
  }

  get name(): string {
    return this.spec.name;
  }

  start(): void {
    const { argv, env, cwd, serve } = this.spec;
    const [file = "", ...args] = argv;
    // In a session of its own, because the terminal's Ctrl-C must reach only the supervisor, which stops the parts in order.
    // The pipe on stdin closes when the supervisor ends, however that happens.
    const stdio = ["pipe", "pipe", "pipe", ...(serve ? ["pipe"] : [])] as ["pipe", "pipe", "pipe"];
    const child = spawn(file, args, { env, cwd, detached: true, stdio });
    if (child.pid !== undefined) serve?.(child.stdio[servedFd] as unknown as Duplex, child.pid);
    if (child.pid !== undefined) prefer(child.pid);
    const startedMs = Date.now();
    this.#child = child;
    for (const stream of [child.stdout, child.stderr]) readLines(stream, (line) => this.#read(line));
    child.stdin.on("error", () => undefined);
    child.once("error", (error) => this.#failed(error));
    child.once("exit", (code, signal) => this.#ended(child, code, signal, Date.now() - startedMs));
    const id = child.pid === undefined ? undefined : identify(child.pid);
    if (id) void noteProcess(this.spec.notes, this.name, id).catch((error: unknown) => this.#log.write(String(error)));
  }

  /** Asks the process to end, waits `patienceMs`, then kills it. It is not restarted. */
  async stop(patienceMs: number): Promise<void> {
    this.#stopping = true;
    clearTimeout(this.#restart);
    const child = this.#child;
    if (child) {
      const ended = once(child, "exit");
      child.kill("SIGTERM");
      const force = setTimeout(() => child.kill("SIGKILL"), patienceMs);
      await ended;
      clearTimeout(force);
    }
    await forgetProcess(this.spec.notes, this.name);
  }

  /** Kills the process at once. It is not restarted. */
  kill(): void {
    this.#stopping = true;
    clearTimeout(this.#restart);
    this.#child?.kill("SIGKILL");
  }

  /** The program does not exist or cannot be run. */
  #failed(error: Error): void {
    this.#child = undefined;
    this.#listener.onRefusal(this, `could not be started (${error.message})`);
  }

  #read(line: string): void {
    if (line === "") return;
    this.#log.write(line);
    this.#listener.onLine(this, this.spec.parse(line));
  }

  #ended(child: Child, code: number | null, signal: NodeJS.Signals | null, ranMs: number): void {
    child.stdin.destroy();
    this.#child = undefined;
    const how = signal ? `was ended by ${signal}` : `ended with exit code ${code}`;
    this.#log.write(`supervisor: ${this.name} ${how}`);
    if (this.#stopping) return;
    if (code === configurationError) return this.#listener.onRefusal(this, how);
    if (ranMs >= healthyMs) this.#deaths = 0;
    const pauseMs = backoffMs(this.#deaths++, restarts);
    this.#restart = setTimeout(() => this.start(), pauseMs);
    this.#listener.onDeath(this, how, pauseMs);
  }
}
