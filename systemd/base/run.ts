/** Runs the short commands of the set-up: one place that starts them, bounds them and words their failures. */
import { ExecaError, execa } from "execa";
import { searchPath } from "./search-path.mjs";

const forceMs = 5_000;

/** How a command is run. */
export interface RunOptions {
  /** The whole environment; nothing but a PATH when left out. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  readonly cwd?: string;
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal | undefined;
  /** What the command gets when it is aborted; SIGTERM when left out. */
  readonly killSignal?: NodeJS.Signals;
  /** Lets the command ask the person at the terminal. */
  readonly input?: "terminal";
  /** Receives every line that the command prints. */
  readonly onLine?: (line: string) => void;
}

/** A command that could not be started or ended with a failure; the message holds what it printed last. */
export class CommandError extends Error {
  override name = "CommandError";
  readonly exitCode: number | undefined;
  readonly output: string;
  constructor(argv: readonly string[], cause: ExecaError) {
    const output = String(cause.all ?? "").trim();
    const reason = output ? lastLines(output, 8) : cause.shortMessage;
    super(`${nameOf(argv)} failed: ${reason}`, { cause });
    this.exitCode = cause.exitCode;
    this.output = output;
  }
}

/**
 * Runs a command and returns its standard output without the final line break.
 *
 * @throws {CommandError} when it fails, runs out of time or is aborted.
 */
export async function run(argv: readonly string[], options: RunOptions = {}): Promise<string> {
  const [file = "", ...args] = argv;
  try {
    const asks = options.input === "terminal";
    const subprocess = execa(file, args, {
      all: true,
      stdin: asks ? "inherit" : "ignore",
      // What asks nobody has no terminal: it gets a session of its own, and its end from us.
      detached: !asks,
      forceKillAfterDelay: forceMs,
      env: options.env ?? { PATH: searchPath },
      extendEnv: false,
      ...(options.killSignal ? { killSignal: options.killSignal } : {}),
      ...(options.cwd ? { cwd: options.cwd } : {}),
      ...(options.timeoutMs ? { timeout: options.timeoutMs } : {}),
      ...(options.signal ? { cancelSignal: options.signal } : {}),
    });
    const endGroup = () => signalGroup(subprocess.pid, options.killSignal ?? "SIGTERM");
    if (!asks) options.signal?.addEventListener("abort", endGroup, { once: true });
    try {
      if (options.onLine) for await (const line of subprocess.iterable({ from: "all" })) options.onLine(line);
      const { stdout } = await subprocess;
      return stdout;
    } finally {
      options.signal?.removeEventListener("abort", endGroup);
    }
  } catch (error) {
    throw error instanceof ExecaError ? new CommandError(argv, error) : error;
  }
}

/** To all that a command has started, as a terminal's Ctrl-C would be. */
function signalGroup(pid: number | undefined, signal: NodeJS.Signals): void {
  try {
    if (pid !== undefined) process.kill(-pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

/** Runs a command that answers yes or no by its exit code. */
export async function succeeds(argv: readonly string[], options: RunOptions = {}): Promise<boolean> {
  try {
    await run(argv, options);
    return true;
  } catch (error) {
    if (error instanceof CommandError && !options.signal?.aborted) return false;
    throw error;
  }
}

/** The command itself, without the `setpriv … --`, `env A=B` and the like in front of it. */
function nameOf(argv: readonly string[]): string {
  const own = argv.slice(argv.lastIndexOf("--") + 1);
  return own
    .filter((word) => word !== "env" && !word.includes("=") && !word.endsWith("/run-as-worker"))
    .slice(0, 2)
    .join(" ");
}

function lastLines(text: string, count: number): string {
  return text.split("\n").slice(-count).join("\n");
}
