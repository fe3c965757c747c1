/** Runs the short commands of the set-up: one place that starts them, bounds them and words their failures. */
import { ExecaError, execa } from "execa";
import { searchPath } from "./search-path.ts";

/** How a command is run. */
export interface RunOptions {
  /** The whole environment; this process's own when left out. */
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
    const subprocess = execa(file, args, {
      all: true,
      stdin: options.input === "terminal" ? "inherit" : "ignore",
      forceKillAfterDelay: 5_000,
      // A person's own PATH often lacks the folders of the system's programs.
      ...(options.env ? { env: options.env, extendEnv: false } : { env: { PATH: searchPath } }),
      ...(options.killSignal ? { killSignal: options.killSignal } : {}),
      ...(options.cwd ? { cwd: options.cwd } : {}),
      ...(options.timeoutMs ? { timeout: options.timeoutMs } : {}),
      ...(options.signal ? { cancelSignal: options.signal } : {}),
    });
    if (options.onLine) for await (const line of subprocess.iterable({ from: "all" })) options.onLine(line);
    const { stdout } = await subprocess;
    return stdout;
  } catch (error) {
    throw error instanceof ExecaError ? new CommandError(argv, error) : error;
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
