/**
 * The network of a container, attached from outside: slirp4netns carries what goes through a device in the network namespace that the
 * OCI runtime has made. Podman can have it do the same, but then everything else of a start waits for it.
 *
 * It watches a pipe that only the container's monitor has open for writing, and so ends with the container, whatever has become of
 * this worker. Where there is no monitor any more, the worker ends it.
 */
import { constants, openSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { SandgateError } from "../../../shared/errors.ts";
import { attempt } from "../../../shared/util/attempt.ts";
import { processIds } from "../../../shared/util/proc.ts";
import type { RuntimeNote } from "../container/container.ts";
import { withOwnMounts } from "../process/namespaces.ts";
import { openStreams, type PipeReader } from "../process/pipes.ts";
import { commandLineOf, pidNamespaceOf } from "../process/proc.ts";
import { killNow, type Program, startProgram } from "../process/program.ts";

const timeoutMs = 30_000;
const device = "tap0";
const program = "slirp4netns";
const options = ["--configure", "--mtu=65520", "--disable-host-loopback", "--enable-sandbox", "--enable-seccomp", "--exit-fd=0", "--ready-fd=1"];
/** A pipe of the container's monitor, in the bundle. */
const monitorPipe = "ctl";
/** That of which container it watches: its folder may have been removed. */
const attachedTo = /\/([^/]+)\/userdata\/ctl( \(deleted\))?$/;
/** What it reports when the network is up, perhaps among other lines. */
const upMark = /^1/m;

/** A network that is being attached. */
export interface Attachment {
  /** Of the program that carries it. */
  readonly pid: number;
  /** Resolves when the network is up. @throws {SandgateError} `internal_error` */
  readonly up: Promise<void>;
}

/**
 * Attaches the network of a container, which has none. Resolves as soon as the program runs.
 *
 * @throws {SandgateError} `internal_error`
 */
export async function attachNetwork({ pid, bundle }: RuntimeNote): Promise<Attachment> {
  const namespace = pidNamespaceOf(pid);
  const pipe = attempt(() => openSync(join(bundle, monitorPipe), constants.O_RDONLY | constants.O_NONBLOCK));
  if (pipe === undefined || namespace === undefined) throw failed("its container has ended");
  const { stdout, stderr, theirs } = openStreams({ hasInput: false });
  // Its streams are closed to us once the network is up, and what it still writes to them must not end it. It hides all files from itself
  // by unmounting them, which in a mount namespace that it shares with Podman would unmount the networks that Podman has made.
  const slirp = startProgram(withOwnMounts([program, ...options, String(pid), device]), { ...theirs, stdin: pipe });
  // The pid may be another container's by now, and one that was opened too late reports nothing.
  const up = untilUp(slirp, { stdout, stderr }, () => pidNamespaceOf(pid) === namespace);
  up.catch(() => {}); // Whoever needs it waits for it.
  return { pid: (await slirp.pid) ?? (await up.then(() => 0)), up };
}

async function untilUp(slirp: Program, streams: Readonly<Record<"stdout" | "stderr", PipeReader>>, isStill: () => boolean): Promise<void> {
  const timer = setTimeout(() => slirp.kill(), timeoutMs);
  try {
    if ((await saysThatItIsUp(streams.stdout)) && isStill()) return;
    slirp.kill();
    throw failed((await streams.stderr.next())?.toString("utf8").trim() || "its program could not be started");
  } finally {
    clearTimeout(timer);
    for (const stream of Object.values(streams)) stream.close();
  }
}

async function saysThatItIsUp(stdout: PipeReader): Promise<boolean> {
  let said = "";
  for (let chunk = await stdout.next(); chunk; chunk = await stdout.next()) {
    said += chunk.toString("latin1");
    if (upMark.test(said)) return true;
  }
  return false;
}

const failed = (why: string): SandgateError =>
  new SandgateError("internal_error", "the network of the sandbox could not be attached", { cause: new Error(why) });

/**
 * Ends what has outlived its container. It does not see the end of one whose monitor had ended before it was attached.
 *
 * @param isOver whether a container has ended
 */
export function endLeftAttachments(isOver: (containerId: string) => boolean): void {
  for (const pid of processIds()) {
    if (!commandLineOf(pid).includes(options.at(-2) ?? "")) continue;
    const [, containerId] = attachedTo.exec(attempt(() => readlinkSync(`/proc/${pid}/fd/0`)) ?? "") ?? [];
    if (containerId !== undefined && isOver(containerId)) killNow(pid);
  }
}
