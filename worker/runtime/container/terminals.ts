/**
 * Pseudo-terminals of commands in containers that no exec server starts, or one of an earlier version; otherwise the command's keeper
 * has the terminal, see `terminal.c`. The worker itself opens the master in the container's own devpts, through
 * `/proc/<pid>/root`, which it can access as root of the same user namespace. So the container knows the command's terminal by
 * its name, and nothing stands between it and the worker.
 *
 * Other ways have drawbacks. The runtime hands out its own terminal only over a console socket, as a descriptor in a message,
 * which Node.js cannot receive. Without that socket, the runtime copies between a terminal of the container and one that it is
 * given; crun 1.8 writes without waiting for room and loses a tenth of a large paste. Here, the command opens the terminal it
 * was given as a session leader, which makes it the controlling one.
 */
import { chownSync, closeSync, constants, fstatSync, openSync } from "node:fs";
import { ReadStream } from "node:tty";
import { SandgateError } from "../../../shared/errors.ts";
import { resizeTerminal, unlockTerminal } from "../../../shared/util/libc.ts";
import { PipeReader } from "../process/pipes.ts";
import type { Size } from "./command.ts";
import { type Container, isThere, notRunning } from "./container.ts";

/** Device number of every `ptmx`: major 5, minor 2. */
const ptmxDevice = 0x502;
const openFlags = constants.O_RDWR | constants.O_NOCTTY | constants.O_NONBLOCK;

/** A new terminal in a container, for the user of its commands. @throws {SandgateError} `internal_error`, `unavailable`. */
export function openTerminal(container: Container, size: Size): Terminal {
  if (!isThere(container)) throw notRunning("its first process has ended");
  const { doorPid, firstId, process } = container;
  const folder = `/proc/${doorPid}/root/dev/pts`;
  const { uid = 0 } = process.user ?? {};
  return open(`${folder}/ptmx`, folder, size, (path) => chownSync(path, firstId + uid, -1));
}

/** A new terminal of the host, for a command whose own kernel has none that could be opened from outside. @throws {SandgateError} `internal_error`. */
export const openHostTerminal = (size: Size): Terminal => open("/dev/ptmx", "/dev/pts", size, () => {});

function open(master: string, folder: string, { rows, cols }: Size, prepare: (path: string) => void): Terminal {
  const fd = openSync(master, openFlags);
  try {
    if (fstatSync(fd).rdev !== ptmxDevice) throw new SandgateError("internal_error", "the sandbox has no terminals");
    const number = unlockTerminal(fd);
    resizeTerminal(fd, rows, cols);
    const slave = `${folder}/${number}`;
    prepare(slave);
    return new Terminal(`/dev/pts/${number}`, fd, openSync(slave, openFlags));
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}

/** The worker's side of one terminal. */
export class Terminal {
  /** Its name in the container; on the host for one of the host. */
  readonly path: string;
  readonly reader: PipeReader;
  readonly fd: number;
  /** Kept open, so that closing all others causes no error that loses the last output. The end of the command itself counts. */
  readonly #slaveFd: number;
  #closed = false;

  constructor(path: string, fd: number, slaveFd: number) {
    this.path = path;
    this.fd = fd;
    this.#slaveFd = slaveFd;
    this.reader = new PipeReader(fd, (reading) => new ReadStream(fd, reading));
  }

  /** The kernel notifies the foreground processes by SIGWINCH. */
  resize({ rows, cols }: Size): void {
    if (!this.#closed) resizeTerminal(this.fd, rows, cols);
  }

  /** Hangs up. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    closeSync(this.#slaveFd);
    this.reader.close();
  }
}
