/** Starting host programs: argv arrays, one deadline, one kill path. Nothing outside this folder does it. */
import { execa, type Options } from "execa";

/** How a host program ended. */
export interface RunResult {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
  readonly timedOut: boolean;
}

export interface RunOptions {
  readonly timeoutMs: number;
  readonly input?: string;
  readonly cwd?: string;
  /** Called with each line of standard error while the program runs. */
  readonly onStderrLine?: (line: string) => void;
}

/** Runs a program to its end. A failure is a result, not an exception. */
export async function run(file: string, args: readonly string[], options: RunOptions): Promise<RunResult> {
  const settings: Options = {
    reject: false,
    timeout: options.timeoutMs,
    killSignal: "SIGKILL",
    maxBuffer: 64 * 1024 * 1024,
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    ...(options.input === undefined ? { stdin: "ignore" } : { input: options.input }),
  };
  const child = execa(file, args, settings);
  if (options.onStderrLine) void reportLines(child.iterable({ from: "stderr" }), options.onStderrLine);
  const result = await child;
  return {
    exitCode: result.exitCode ?? -1,
    stdout: String(result.stdout ?? ""),
    stderr: String(result.stderr || (result.exitCode === undefined ? (result as { shortMessage?: string }).shortMessage : "") || ""),
    timedOut: result.timedOut,
  };
}

async function reportLines(lines: AsyncIterable<unknown>, report: (line: string) => void): Promise<void> {
  try {
    for await (const line of lines) report(String(line));
  } catch {
    // The program's own result tells what went wrong.
  }
}
