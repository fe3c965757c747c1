/** Sends a file, or a directory as a tar archive. */

import { stoppedBy } from "../../shared/abort.ts";
import { SandgateError } from "../../shared/errors.ts";
import type { Stream } from "../../shared/stream/stream.ts";
import type { Parts } from "../exec/json-text.ts";
import { pump, type Sink } from "../exec/output.ts";
import type { FileCommand, RunningCommand } from "../runtime/container/command.ts";
import type { Container } from "../runtime/container/container.ts";
import type { OciRuntime } from "../runtime/container/oci.ts";
import { leftExitCode } from "../runtime/exec-server/files.ts";
import { lineOf, startTool, textOf, toolFault } from "./tool.ts";

// The file is opened once. Its size is that of the opened file, and exactly that many bytes are sent, which is seen to here: `head -c`
// would, but in pieces of 8 KiB. Files that the kernel generates on reading (proc, sysfs, cgroups, message queues) report no size or a wrong one.
const sendFile = `
[ -e "$1" ] || exit 44
[ -d "$1" ] && exit 21
[ -f "$1" ] || exit 22
[ -r "$1" ] || exit 23
exec < "$1" || exit 23
case $(stat -L -f -c %t /proc/self/fd/0 2>/dev/null) in 9fa0 | 62656572 | 27e0eb | 63677270 | 19800202)
  echo unknown >&2
  cat || exit 2
  exit 0
esac
size=$(stat -L -c %s /proc/self/fd/0) || exit 1
echo "size $size" >&2
exec cat
`;

const sendTar = `
[ -e "$1" ] || exit 44
if [ -d "$1" ]; then dir=$1 name=.; else dir=\${1%/*}; dir=\${dir:-/} name=./\${1##*/}; fi
cd -- "$dir" || exit 23
command -v tar >/dev/null || exit 127
echo tar >&2
exec tar -cf - "$name"
`;

const openTimeoutMs = 10_000;
/** The longest line with a size. */
const sizeLineMax = 16;

export interface Download {
  /** The number of bytes to come, if known in advance. */
  readonly size: number | undefined;
  /** Sends everything and resolves with the stream's summary. Rejects when not all could be sent. A broken stream ends it. */
  send(stream: Stream): Promise<object>;
}

/**
 * Opens a path for sending.
 *
 * @param gone aborted when nobody waits for the file any more.
 * @throws {SandgateError} `not_found`, `unprocessable`.
 */
export async function openDownload(oci: OciRuntime, container: Container, file: { path: string; archive: boolean }, gone: AbortSignal): Promise<Download> {
  const { path, archive } = file;
  const served = archive ? undefined : await openByServer(oci, container, path, gone);
  if (served) return served;
  const tool = await startTool(oci, container, archive ? sendTar : sendFile, [path], "none");
  const firstLine = await untilOpened(tool, gone, () => lineOf(tool.stderr));
  const size = /^size (\d+)$/m.exec(firstLine)?.[1];
  if (size === undefined && !/^(tar|unknown)$/m.test(firstLine)) {
    const exitCode = await tool.exited.finally(() => tool.close());
    throw toolFault(exitCode, firstLine, path);
  }
  return {
    size: size === undefined ? undefined : Number(size),
    send: (stream) => sendAll(tool, stream, path, size === undefined ? undefined : new Counted(Number(size), tool)).finally(() => tool.close()),
  };
}

/** A file that the exec server of the sandbox sends; undefined if a program is to do it. @throws {SandgateError} as `openDownload` */
async function openByServer(oci: OciRuntime, container: Container, path: string, gone: AbortSignal): Promise<Download | undefined> {
  const tool = await oci.sendFile(container, path);
  if (!tool) return undefined;
  const first = await untilOpened(tool, gone, () => tool.stdout.next());
  // Of a server of an earlier version, an exit code is not to be had.
  const exitCode = first ? 0 : await tool.exited.catch(() => leftExitCode);
  const [line = "", digits] = /^(\d{1,15})\n/.exec(first?.toString("latin1", 0, sizeLineMax) ?? "") ?? [];
  if (first && digits) {
    const size = Number(digits);
    const early = first.subarray(line.length, line.length + size);
    return { size, send: (stream) => sendServed(tool, stream, path, { early, size }).finally(() => tool.close()) };
  }
  tool.close();
  if (exitCode === leftExitCode) return undefined;
  throw toolFault(exitCode, "", path);
}

/** What comes first of it. It has a timeout, because opening a file just replaced by a named pipe would hang. */
async function untilOpened<T>(tool: FileCommand, gone: AbortSignal, opened: () => Promise<T>): Promise<T> {
  const signal = AbortSignal.any([gone, AbortSignal.timeout(openTimeoutMs)]);
  return stoppedBy(signal, () => void tool.kill(), opened);
}

/** @param early the beginning of the file, which has come with its size; all of a small one */
async function sendServed(tool: FileCommand, stream: Stream, path: string, { early, size }: { early: Buffer; size: number }): Promise<object> {
  if (early.length > 0) await stream.write(early);
  if (early.length === size) return {};
  const counted = new Counted(size - early.length, tool);
  const run = () => Promise.all([tool.exited, pump(stream, tool.stdout, counted)]);
  const [exitCode] = await stream.whileOpen(() => void tool.kill(), run);
  if (exitCode > 0 && !counted.isEnded) throw notWhole(path);
  return {};
}

/** So many bytes of a file that may have more by now: then its program is ended. */
class Counted implements Sink {
  readonly #tool: FileCommand;
  #left: number;
  #isEnded = false;

  constructor(bytes: number, tool: FileCommand) {
    this.#left = bytes;
    this.#tool = tool;
  }

  /** Whether there is more than was to be sent, so that the exit code says nothing. */
  get isEnded(): boolean {
    return this.#isEnded;
  }

  isWanted(isClientGone: boolean): boolean {
    return !isClientGone && this.#left > 0;
  }

  drop(): void {
    if (this.#isEnded || this.#left > 0) return;
    this.#isEnded = true;
    void this.#tool.kill();
  }

  take(piece: Buffer): Parts {
    const part = piece.subarray(0, this.#left);
    this.#left -= part.length;
    if (part.length < piece.length) this.drop();
    return [part];
  }
}

async function sendAll(tool: RunningCommand, stream: Stream, path: string, counted: Counted | undefined): Promise<object> {
  const run = () => Promise.all([tool.exited, textOf(tool.stderr), pump(stream, tool.stdout, counted)]);
  const [exitCode, stderr] = await stream.whileOpen(() => void tool.kill(), run);
  if (counted?.isEnded) return {};
  // tar exits with 1 when a file changed while being read, which is no reason to withhold the archive.
  if (exitCode > 1) throw notWhole(path, stderr);
  return {};
}

const notWhole = (path: string, said = ""): SandgateError =>
  new SandgateError("unprocessable", `the file could not be read whole: ${path}`, { reason: "inaccessible", cause: new Error(said) });
