/** Runs one program to its end, from whichever process this is called in. */
import { execa, type Options } from "execa";

/** How a host program ended. */
export interface RunResult {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
  readonly timedOut: boolean;
}

/** What a program is given; nothing here that could not be passed to another process. */
export interface RunSettings {
  readonly timeoutMs: number;
  readonly input?: string;
  readonly cwd?: string;
}

const outputBytesMax = 64 * 1024 * 1024;

/**
 * A failure is a result, not an exception.
 *
 * @param signal kills the program.
 */
export async function runProgram(file: string, args: readonly string[], settings: RunSettings, signal?: AbortSignal): Promise<RunResult> {
  const options: Options = {
    reject: false,
    // One that is ended half-way leaves what nobody knows of; a worker that starts again waits for it instead.
    cleanup: false,
    timeout: settings.timeoutMs,
    killSignal: "SIGKILL",
    maxBuffer: outputBytesMax,
    ...(settings.cwd === undefined ? {} : { cwd: settings.cwd }),
    ...(signal ? { cancelSignal: signal } : {}),
    ...(settings.input === undefined ? { stdin: "ignore" } : { input: settings.input }),
  };
  const result = await execa(file, args, options);
  return {
    exitCode: result.exitCode ?? -1,
    stdout: String(result.stdout ?? ""),
    stderr: String(result.stderr || (result.exitCode === undefined ? (result as { shortMessage?: string }).shortMessage : "") || ""),
    timedOut: result.timedOut,
  };
}
