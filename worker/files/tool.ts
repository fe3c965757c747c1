/** Small shell programs that run inside a sandbox, where no path or link can lead to the host. */
import { SandgateError } from "../../shared/errors.ts";
import type { RunningCommand } from "../runtime/container/command.ts";
import type { Container } from "../runtime/container/container.ts";
import { reaperFailure } from "../runtime/container/failures.ts";
import type { OciRuntime } from "../runtime/container/oci.ts";
import type { PipeReader } from "../runtime/process/pipes.ts";

const textBytesMax = 8 * 1024;

/** Exit codes by which our programs report what is wrong. */
const faults: Record<number, (path: string) => SandgateError> = {
  17: (path) => new SandgateError("unprocessable", `the path is not a regular file: ${path}`, { reason: "exists" }),
  20: (path) => new SandgateError("unprocessable", `a part of the path is not a directory: ${path}`, { reason: "not_a_directory" }),
  21: (path) => new SandgateError("unprocessable", `the path is a directory: ${path}`, { reason: "is_directory" }),
  22: (path) => new SandgateError("unprocessable", `the path is not a regular file: ${path}`, { reason: "not_a_file" }),
  23: (path) => new SandgateError("unprocessable", `permission denied: ${path}`, { reason: "permission_denied" }),
  44: (path) => new SandgateError("not_found", `File not found: ${path}`, { reason: "no_such_file" }),
};

const shell = ["/bin/sh", "-c"];

/** Starts a shell program with arguments. */
export async function startTool(
  oci: OciRuntime,
  container: Container,
  program: string,
  args: readonly string[],
  stdin: "none" | "pipe",
): Promise<RunningCommand> {
  const tool = await oci.exec(container, { args: [...shell, program, "/bin/sh", ...args], env: {}, workingDir: "/", stdin });
  tool.started.catch(() => {});
  tool.exited.catch(() => {});
  return tool;
}

/** Runs a shell program to its end and returns its output. @throws {SandgateError} for the exit codes above and for a full disk. */
export async function runTool(oci: OciRuntime, container: Container, program: string, args: readonly string[], path: string): Promise<string> {
  const { exitCode, stdout, stderr } = await endOf(await startTool(oci, container, program, args, "none"));
  if (exitCode !== 0) throw toolFault(exitCode, stderr, path);
  return stdout;
}

/** Waits for a program without input; returns its exit code and the beginning of its output. */
export async function endOf(tool: RunningCommand): Promise<{ exitCode: number; stdout: string; stderr: string }> {
  try {
    const [exitCode, stderr, stdout] = await Promise.all([tool.exited, textOf(tool.stderr), textOf(tool.stdout)]);
    return { exitCode, stdout, stderr };
  } finally {
    tool.close();
  }
}

/** The caller's error for a program's exit code and messages. */
export function toolFault(exitCode: number, stderr: string, path: string): SandgateError {
  const known = reaperFailure(stderr, shell) ?? faults[exitCode]?.(path);
  if (known) return known;
  const cause = new Error(`exit ${exitCode}: ${stderr}`);
  if (/no space left|quota exceeded/i.test(stderr)) return new SandgateError("insufficient_storage", "the sandbox or its host is out of disk space", { cause });
  if (/permission denied|not permitted|read-only/i.test(stderr))
    return new SandgateError("unprocessable", `permission denied: ${path}`, { reason: "permission_denied", cause });
  if (/not a directory/i.test(stderr))
    return new SandgateError("unprocessable", `a part of the path is not a directory: ${path}`, { reason: "not_a_directory", cause });
  if (/not found/i.test(stderr) && exitCode === 127)
    return new SandgateError("unprocessable", "the image lacks a program that this needs", { reason: "no_such_program", cause });
  return new SandgateError("unprocessable", `the file could not be accessed: ${path}`, { reason: "inaccessible", cause });
}

/** The beginning of a pipe's text; the rest is read and dropped. */
export async function textOf(pipe: PipeReader): Promise<string> {
  let text = "";
  for (let chunk = await pipe.next(); chunk; chunk = await pipe.next()) {
    if (text.length < textBytesMax) text += chunk.toString("utf8");
    else await pipe.drop(chunk.length);
  }
  return text;
}

/** Reads one line and leaves the rest of the pipe unread. */
export async function lineOf(pipe: PipeReader): Promise<string> {
  let text = "";
  for (let chunk = await pipe.next(); chunk; chunk = await pipe.next()) {
    text += chunk.toString("utf8");
    if (text.includes("\n") || text.length > textBytesMax) break;
  }
  return text;
}
