/**
 * Converts a layer to a stream of bytes and back: a tar archive, compressed by zstd, with everything that an overlay's upper
 * folder can hold: owners, modes, times to the nanosecond, hard links, holes, device nodes (which include whiteouts), FIFOs
 * and extended attributes (including overlay's own marks). Sockets are left out, since they are useless without their process.
 * Whiteouts that are links to one device become separate devices.
 */
import { randomUUID } from "node:crypto";
import { SandgateError } from "../../../shared/errors.ts";
import { programFile } from "../../../shared/programs.mjs";
import { PipedProgram } from "../process/piped.ts";
import { isOutOfDisk } from "../process/run.ts";

/** Reading through a file of a terabyte of zeros produces no output for minutes. */
const stallMs = 3_600_000;

/** POSIX archives keep fractions of seconds; access and change times would need another header for every file. */
const createArgs = ["--create", "--format=posix", "--pax-option=delete=atime,delete=ctime", "--sparse", "--one-file-system"];
const extractArgs = ["--extract", "--same-owner", "--same-permissions"];
/** A security module's labels belong to the host, not to the file. */
const commonArgs = ["--numeric-owner", "--xattrs", "--xattrs-include=*", "--xattrs-exclude=security.selinux", "--file=-"];

/** `tar` could not unpack a layer. It does not always say that a path is too long, so `unpackDeepLayer` may still succeed. */
export class UnpackFailed extends SandgateError {
  constructor(cause: Error) {
    super("internal_error", "a layer could not be unpacked", { cause });
  }
}

/** `tar` descends by recursion; with a stack of the usual size it would crash on 20,000 nested folders. */
const anyDepth = ["bash", "-c", 'ulimit -S -s hard; exec "$@"', "bash"];

const shortNames = programFile("worker/runtime/filesystem/short-names.ts");

/**
 * $1 is the folder, $2 our temporary folder in it, followed by the program that shortens names and the arguments of `tar`.
 * Folders arrive out of order, so they get their attributes at the end. Each top is then moved to its place, deepest first, so
 * that no path is ever long. The moves must not change folder times, and no link may lead out of the layer.
 */
const unpackDeep = `
set -eo pipefail
cd -- "$1"
base=$(pwd -P) ours=$2 node=$3 names=$4
shift 4
mkdir -- "$ours"
zstd -d -q -c | "$node" "$names" "$ours" | tar --delay-directory-restore "$@"
touch -m -r . -- "$ours/own-time"
while IFS= read -r -d "" top && IFS= read -r -d "" folder && IFS= read -r -d "" name; do
  cd -P -- "$base/$folder"
  [ "$PWD" = "$base/$folder" ] || { echo "a link leads out of the layer" >&2; exit 1; }
  touch -m -r . -- "$base/$ours/time"
  mv -T -- "$base/$top" "./$name"
  touch -m -r "$base/$ours/time" .
done < "$ours/joints"
cd -- "$base"
exec 3< "$ours/own-time"
rm -f -- "$ours/own-time" "$ours/time" "$ours/joints"
rmdir -- "$ours"
touch -m -r /proc/self/fd/3 .
`;

/**
 * The archive of the contents of `dir`, packed as fast as it is read. Packing ends when the reader stops.
 *
 * @throws {SandgateError} `internal_error` when not everything could be packed; the output so far is then no archive.
 */
export async function* packLayer(dir: string, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  const argv = [...anyDepth, "tar", ...createArgs, ...commonArgs, "--use-compress-program=zstd -3 -T1 -q", `--directory=${dir}`, "."];
  const tar = new PipedProgram(argv, { pipe: "stdout", stallMs, signal });
  try {
    yield* tar.output();
    const failure = await tar.ended();
    signal.throwIfAborted();
    if (failure) throw new SandgateError("internal_error", "a layer could not be packed", { cause: new Error(failure) });
  } finally {
    tar.kill();
  }
}

/**
 * Unpacks an archive into an existing folder, which takes on the attributes of the packed one. After an error the folder may
 * hold a part of the layer and should be removed. Errors of `archive` itself are passed on.
 *
 * @throws {UnpackFailed}, also for long paths; {SandgateError} `insufficient_storage`.
 */
export function unpackLayer(archive: AsyncIterable<Uint8Array>, dir: string, signal: AbortSignal): Promise<void> {
  return unpackBy(["tar", ...extractArgs, ...commonArgs, "--use-compress-program=zstd -q", `--directory=${dir}`], archive, signal);
}

/** The same for a layer with paths of any length, into an empty folder. */
export function unpackDeepLayer(archive: AsyncIterable<Uint8Array>, dir: string, signal: AbortSignal): Promise<void> {
  // A name that nobody in the sandbox could know when the layer was packed.
  const ours = `.sandgate-${randomUUID()}`;
  return unpackBy(["bash", "-c", unpackDeep, "bash", dir, ours, process.execPath, shortNames, ...extractArgs, ...commonArgs], archive, signal);
}

async function unpackBy(argv: readonly string[], archive: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<void> {
  const tar = new PipedProgram(argv, { pipe: "stdin", stallMs, signal });
  try {
    // The rest is read even if tar takes no more: only the archive's end tells whether it was whole.
    for await (const chunk of archive) if (!(await tar.write(chunk))) await finish(tar, signal);
    await finish(tar, signal);
  } finally {
    tar.kill();
  }
}

async function finish(tar: PipedProgram, signal: AbortSignal): Promise<void> {
  const failure = await tar.ended();
  signal.throwIfAborted();
  if (!failure) return;
  const cause = new Error(failure);
  if (isOutOfDisk(failure)) throw new SandgateError("insufficient_storage", "the host is out of disk space", { cause });
  throw new UnpackFailed(cause);
}
