/** The one interface to Podman: how it is called, and how its errors are translated. */
import { SandgateError } from "../../../shared/errors.ts";
import { isImageId } from "../../../shared/util/image.ts";
import { isOutOfDisk, type RunResult, run } from "../process/run.ts";

const podmanTimeoutMs = 120_000;

/** Runs podman to its end; its exit is the result. */
export const podman = (args: readonly string[]): Promise<RunResult> => run("podman", args, { timeoutMs: podmanTimeoutMs });

/** Runs podman to its end and returns its output. @param action what it does, for the error @throws {SandgateError} see `failure` */
export async function podmanOutput(action: string, args: readonly string[]): Promise<string> {
  const result = await podman(args);
  if (result.exitCode !== 0) throw failure(action, result);
  return result.stdout;
}

/** An image that was here is gone. */
export class ImageGone extends SandgateError {
  constructor(id: string) {
    super("unprocessable", "image not found: it is not on this worker any more", { cause: new Error(id), reason: "image_not_found" });
  }
}

/** The last check before Podman, which accepts much more than ids as an image. @throws {SandgateError} `internal_error`. */
export function checkedId(id: string): string {
  if (!isImageId(id)) throw new SandgateError("internal_error", "the sandbox host was given no id of an image", { cause: new Error(id.slice(0, 100)) });
  return id;
}

/** Whether podman failed because there is no such image. */
export const isImageMissing = (result: RunResult): boolean =>
  result.exitCode === 125 && /image not known|no such image|failed to find image|image not found|does not resolve to an image/i.test(result.stderr);

export const lastLine = (text: string): string => text.trim().split("\n").at(-1) ?? "";

/** The caller's error for something that podman could not do. */
export function failure(action: string, result: RunResult): SandgateError {
  const cause = new Error(`podman could not ${action} (exit ${result.exitCode}${result.timedOut ? ", timed out" : ""}): ${result.stderr.slice(-2_000)}`);
  if (isOutOfDisk(result.stderr)) return new SandgateError("insufficient_storage", "the host is out of disk space", { cause });
  return new SandgateError("internal_error", `the sandbox host could not ${action}`, { cause });
}
