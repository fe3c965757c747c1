/** How Podman's errors are translated, and the one program of it that is not the service: for what its API does not offer. */
import { SandgateError } from "../../../shared/errors.ts";
import { attempt } from "../../../shared/util/attempt.ts";
import { isImageId } from "../../../shared/util/image.ts";
import { isOutOfDisk, programFailure, type RunResult, run } from "../process/run.ts";

const podmanTimeoutMs = 120_000;

/** Runs podman to its end; its exit is the result. */
export const podman = (args: readonly string[], timeoutMs = podmanTimeoutMs): Promise<RunResult> => run("podman", args, { timeoutMs });

/** What Podman's service answered: 2xx and 304 (nothing to do) for success. */
export interface Answer {
  readonly status: number;
  readonly text: string;
}

/** Podman's service ended during a call. */
export class PodmanLost extends SandgateError {
  constructor(how: string) {
    super("internal_error", "the sandbox host was interrupted", { cause: new Error(`podman's service was lost: ${how}`) });
  }
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

export const isDone = ({ status }: Answer): boolean => (status >= 200 && status < 300) || status === 304;

/** Podman's own words for what went wrong. */
export const reasonOf = ({ text }: Answer): string => attempt(() => JSON.parse(text) as { cause?: string; message?: string })?.message ?? text;

/** Whether a call failed because there is no such image. */
export const isImageMissing = (answer: Answer): boolean =>
  !isDone(answer) && /image not known|no such image|failed to find image|image not found|does not resolve to an image/i.test(reasonOf(answer));

export const lastLine = (text: string): string => text.trim().split("\n").at(-1) ?? "";

/** The caller's error for something that Podman could not do. @param how its answer, or the end of the program */
export function failure(action: string, how: Answer | RunResult): SandgateError {
  const [kind, reason] = "status" in how ? [`status ${how.status}`, reasonOf(how)] : [`exit ${how.exitCode}${how.timedOut ? ", timed out" : ""}`, how.stderr];
  const cause = new Error(`podman could not ${action} (${kind}): ${reason.slice(-2_000)}`);
  if (isOutOfDisk(reason)) return new SandgateError("insufficient_storage", "the host is out of disk space", { cause });
  return programFailure(`the sandbox host could not ${action}`, { stderr: cause.message, timedOut: "timedOut" in how && how.timedOut });
}
