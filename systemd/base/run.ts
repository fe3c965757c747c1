/** Runs the short commands of the set-up: starts them, limits their time, and reports their failures. */
import { ExecaError, execa } from "execa";
import { searchPath } from "./search-path.mjs";

const forceMs = 5_000;

/** How a command is run. */
export interface RunOptions {
  /** The complete environment; only a PATH if absent. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  readonly cwd?: string;
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal | undefined;
  /** The signal that an aborted command gets; SIGTERM if absent. */
  readonly killSignal?: NodeJS.Signals;
  /** `terminal` lets the command prompt the user. */
  readonly input?: "terminal";
  /** Receives every line that the command prints. */
  readonly onLine?: (line: string) => void;
}

/** A command that could not be started or that failed. The message contains the end of its output. */
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
      // A command that prompts nobody gets no terminal: it runs in its own session, and we end it.
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

/** Signals the command and everything it has started, like Ctrl-C in a terminal. */
function signalGroup(pid: number | undefined, signal: NodeJS.Signals): void {
  try {
    if (pid !== undefined) process.kill(-pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

/** Runs a command and says whether it exits with 0. */
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
