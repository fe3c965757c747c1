/** Why a command could not be started, from what the OCI runtime or the exec server says. */
import { constants } from "node:os";
import { SandgateError } from "../../../shared/errors.ts";
import type { ProcessSpec } from "./command.ts";
import { type Container, isThere, notRunning } from "./container.ts";

const aboutDirectory = /chdir|cwd|working directory/i;

/** @param log the runtime's messages */
export function startFailure(log: string, spec: ProcessSpec, container: Container): SandgateError {
  const cause = new Error(log.trim());
  // Without the container's first process, the runtime complains about one missing thing or another.
  if (!isThere(container)) return notRunning(log);
  if (aboutDirectory.test(log) && spec.workingDir === undefined && /no such file|not a directory/i.test(log)) return noFolder(spec, container, cause);
  // At the process limit, the runtime may even fail to enter its usual working directory, or lose its process in the container.
  if (/resource temporarily unavailable|fail startup|sync socket/i.test(log) || (/chdir/i.test(log) && spec.workingDir === undefined)) return full(cause);
  if (aboutDirectory.test(log)) return noFolder(spec, container, cause);
  if (/not running|does not exist|no such process|container.*stopped/i.test(log)) return notRunning(log);
  if (/executable file|no such file or directory/i.test(log))
    return new SandgateError("unprocessable", `the image has no ${spec.args[0]}`, { reason: "no_such_program", cause });
  return failed(cause);
}

const { EACCES, EAGAIN, ELOOP, ENAMETOOLONG, ENOENT, ENOEXEC, ENOMEM, ENOTDIR } = constants.errno;

/** @param report the stage of the start in `server.c`, and the error of the system call that failed */
export function servedFailure({ stage, errno }: { readonly stage: string; readonly errno: number }, spec: ProcessSpec, container: Container): SandgateError {
  const cause = new Error(`stage ${stage} of the start failed with error ${errno}`);
  if (!isThere(container)) return notRunning(cause.message);
  if ([EAGAIN, ENOMEM].includes(errno)) return full(cause);
  if (stage === "c" && [EACCES, ELOOP, ENAMETOOLONG, ENOENT, ENOTDIR].includes(errno)) return noFolder(spec, container, cause);
  if (stage === "e" && [EACCES, ELOOP, ENOENT, ENOEXEC, ENOTDIR].includes(errno)) return noProgram(spec.args, cause);
  return failed(cause);
}

function noFolder({ workingDir }: ProcessSpec, { process: { cwd } }: Container, cause: Error): SandgateError {
  const removed = `the working directory ${cwd} is not there any more: it was removed in the sandbox; name another as working_dir`;
  const message = workingDir === undefined ? removed : `working_dir does not exist or is not a directory: ${workingDir}`;
  return new SandgateError("unprocessable", message, { reason: "no_such_working_dir", cause });
}

const full = (cause: Error): SandgateError =>
  new SandgateError("unavailable", "the sandbox, or all sandboxes of its worker together, have as many processes as they may have", { cause });

const failed = (cause: Error): SandgateError => new SandgateError("internal_error", "the command could not be started", { cause });

function noProgram(args: readonly string[], cause: Error): SandgateError {
  const message = `the sandbox has no ${args[0]} that works, which every call needs: were its files removed?`;
  return new SandgateError("unprocessable", message, { reason: "no_such_program", cause });
}

const saidByReaper = /^(?:ERROR \(catatonit:\d+\): failed to exec pid1|sandgate-exec: the command could not be started): (.*)\n$/;

/** The error when the subreaper's own message is all the output, because it could not start the command, whose files were removed, for example. */
export function reaperFailure(stderr: string, args: readonly string[]): SandgateError | undefined {
  const [, why] = saidByReaper.exec(stderr) ?? [];
  if (why === "No such file or directory") return noProgram(args, new Error(stderr));
  return why === "Resource temporarily unavailable" ? full(new Error(stderr)) : undefined;
}
