/** Receives a file beside its place in the sandbox, or for a large one in a temporary file, and moves it there only once it is complete. */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { stoppedBy } from "../../shared/abort.ts";
import type { UploadDone } from "../../shared/bus/contract/files.ts";
import { SandgateError } from "../../shared/errors.ts";
import { faultPoint } from "../../shared/faults.ts";
import type { UploadTarget } from "../../shared/schemas/files.ts";
import type { Stream } from "../../shared/stream/stream.ts";
import { type RunningCommand, sigkillExitCode } from "../runtime/container/command.ts";
import type { Container } from "../runtime/container/container.ts";
import type { OciRuntime } from "../runtime/container/oci.ts";
import { smallFileBytesMax } from "../runtime/exec-server/files.ts";
import { drained } from "../runtime/process/pipes.ts";
import { Incoming, type Whole } from "./incoming.ts";
import { endOf, runTool, startTool, textOf, toolFault } from "./tool.ts";

const defaultMode = "644";
const receive = 'mkdir -p /tmp && umask 077 && exec cat > "$1"';
const discard = 'rm -f -- "$1" "$1.list"';
const discardAll = "rm -f -- /tmp/.sandgate-upload-*";
// $1 temporary file, $2 path, $3 mode, $4 a name next to the path.
const place = `
[ -d "$2" ] && exit 21
[ -e "$2" ] && ! [ -f "$2" ] && exit 17
dir=\${2%/*}
mkdir -p -- "\${dir:-/}" || exit 20
chmod "$3" "$1" && mv -f -- "$1" "\${dir:-/}/$4" || { code=$?; rm -f -- "\${dir:-/}/$4"; exit $code; }
[ -d "$2" ] && { rm -f -- "\${dir:-/}/$4"; exit 21; }
mv -f -- "\${dir:-/}/$4" "$2" || { code=$?; rm -f -- "\${dir:-/}/$4"; exit $code; }
`;

const failedExitCode = 45;
const reasonCharsMax = 200;

// $1 the archive, $2 the folder; prints the number of entries.
const unpackProgram = `
[ -e "$2" ] && ! [ -d "$2" ] && exit 20
command -v tar >/dev/null || { echo "tar: not found" >&2; exit 127; }
mkdir -p -- "$2" && tar -x -v -p -f "$1" -C "$2" > "$1.list" && wc -l < "$1.list" || {
  # Where tar may not replace a file, it only says that the file exists.
  [ -d "$2" ] && ! [ -w "$2" ] && exit 23
  exit ${failedExitCode}
}
rm -f -- "$1" "$1.list"
`;

/** The prefix of all files that an upload creates for itself. */
export const temporaryNameOf = (id: string): string => `.sandgate-upload-${id}`;

/** What a complete file is called beside its path, so that the last step is a rename within one file system. */
const besideNameOf = (id: string): string => `${temporaryNameOf(id)}.whole`;

export interface UploadJob {
  readonly oci: OciRuntime;
  readonly container: Container;
  readonly id: string;
  /** Carries the file. It breaks when nobody waits for the outcome any more, or when the sandbox must accept no more. */
  readonly stream: Stream;
  /** The most that the file may have, where that is known; otherwise 0. */
  readonly sizeHint: number;
  /** Called with every chunk's size before it is written; throws when it must not be written. */
  readonly account: (bytes: number) => void;
}

/** Removes what uploads of an earlier process left behind. */
export async function discardLeftovers(oci: OciRuntime, container: Container): Promise<void> {
  if (container.writableLayer) {
    const names = await readdir(join(container.writableLayer, "tmp")).catch(() => []);
    if (!names.some((name) => name.startsWith(".sandgate-upload-"))) return;
  }
  await runTool(oci, container, discardAll, [], "/tmp");
}

/** Reads the stream to its end and returns the file's size. On failure an old file stays; of an archive, what was already unpacked. */
export async function takeUpload(job: UploadJob): Promise<UploadDone> {
  const incoming = new Incoming(job.stream, job.account);
  const whole = job.sizeHint <= smallFileBytesMax ? await incoming.whole(smallFileBytesMax) : undefined;
  const isPlaced = whole !== undefined && !whole.target.archive && (await placeSmall(job, whole));
  return isPlaced ? { size: incoming.size } : takeByPrograms(job, incoming);
}

/** Has the exec server put the file into place. @returns whether it has */
async function placeSmall({ oci, container, id, stream }: UploadJob, { content, target }: Whole): Promise<boolean> {
  const { path, mode = defaultMode } = target;
  refuseFolder(path);
  const temporaryName = besideNameOf(id);
  faultPoint("upload.received");
  const exitCode = await oci.writeSmall(container, { path, content, temporaryName, mode }, stream.signal);
  if (exitCode === undefined) return false;
  if (exitCode === sigkillExitCode) await runTool(oci, container, discard, [`${path.slice(0, path.lastIndexOf("/"))}/${temporaryName}`], path).catch(() => {});
  if (exitCode !== 0) throw toolFault(exitCode, "", path);
  faultPoint("upload.placed");
  return true;
}

async function takeByPrograms(job: UploadJob, incoming: Incoming): Promise<UploadDone> {
  const temporary = `/tmp/${temporaryNameOf(job.id)}`;
  try {
    const { path: target, archive, mode = defaultMode } = await writeTemporary(job, incoming, temporary);
    const { size } = incoming;
    faultPoint("upload.received");
    if (archive) return { size, files: await unpack(job.oci, job.container, temporary, target, job.stream.signal) };
    refuseFolder(target);
    await runTool(job.oci, job.container, place, [temporary, target, mode, besideNameOf(job.id)], target);
    faultPoint("upload.placed");
    return { size };
  } catch (error) {
    await runTool(job.oci, job.container, discard, [temporary], temporary).catch(() => {});
    throw error;
  }
}

/** @throws {SandgateError} `unprocessable` for a path that can only be a folder's */
function refuseFolder(path: string): void {
  if (path.endsWith("/")) throw new SandgateError("unprocessable", `the path is a directory: ${path}`, { reason: "is_directory" });
}

async function writeTemporary(job: UploadJob, incoming: Incoming, temporary: string): Promise<UploadTarget> {
  const tool = await startTool(job.oci, job.container, receive, [temporary], "pipe");
  const stderr = textOf(tool.stderr);
  const written = tool.exited.then(async (code) => {
    if (code !== 0) throw toolFault(code, await stderr, temporary);
  });
  // A program that ends early fails the stream, so that its reader learns why.
  written.catch((error: unknown) => job.stream.fail(SandgateError.from(error)));
  try {
    // A program stopped from inside the sandbox takes no bytes, so feeding it would never notice that the stream has ended.
    const target = await job.stream.whileOpen(
      () => void tool.kill(),
      () => feed(incoming, tool),
    );
    await written;
    return target;
  } catch (error) {
    // Before the kill, whose exit code would otherwise be reported as the reason.
    job.stream.fail(SandgateError.from(error));
    await tool.kill();
    throw error;
  } finally {
    tool.close();
  }
}

async function feed(incoming: Incoming, tool: RunningCommand): Promise<UploadTarget> {
  const stdin = tool.stdin;
  if (!stdin) throw new SandgateError("internal_error", "the file could not be written");
  // Raised by a write after the program has ended. What counts is how the program ended.
  stdin.on("error", () => {});
  const target = await incoming.readEach(async (chunk) => {
    if (!stdin.write(chunk)) await drained(stdin);
  });
  stdin.end();
  return target;
}

/**
 * Unpacks an archive by the sandbox's own `tar`.
 *
 * @param signal aborts unpacking
 * @returns the number of files and folders in the archive
 * @throws {SandgateError} `unprocessable`, `insufficient_storage`, the reason of the signal.
 */
async function unpack(oci: OciRuntime, container: Container, archive: string, folder: string, signal: AbortSignal): Promise<number> {
  const tool = await startTool(oci, container, unpackProgram, [archive, folder], "none");
  const { exitCode, stdout, stderr } = await stoppedBy(
    signal,
    () => void tool.kill(),
    () => endOf(tool),
  );
  if (signal.aborted) throw SandgateError.from(signal.reason);
  if (exitCode !== 0) throw unpackFault(exitCode, stderr, folder);
  return Number(stdout) || 0;
}

function unpackFault(exitCode: number, stderr: string, folder: string): SandgateError {
  const known = toolFault(exitCode, stderr, folder);
  if (exitCode !== failedExitCode || known.code !== "unprocessable") return known;
  const [line = ""] = stderr.split("\n");
  return new SandgateError("unprocessable", `the archive could not be unpacked in ${folder}: ${line.slice(0, reasonCharsMax)}`, {
    reason: "bad_archive",
    cause: known.cause,
  });
}
