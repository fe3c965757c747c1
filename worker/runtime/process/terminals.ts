/**
 * Pseudo-terminals of commands in containers. The master is opened by the worker itself in the container's own devpts,
 * through `/proc/<pid>/root`, which the worker may see because it is root of the same user namespace. So the command has
 * a terminal that its container knows under its name, and nothing stands between it and the worker.
 *
 * The other ways were tried. The runtime's own terminal can only be had over a console socket, as a descriptor in a
 * message, which Node.js cannot receive. Without that socket the runtime copies between a terminal of the container and
 * one that it is given; crun 1.8 writes without waiting for room and loses a tenth of a large paste.
 *
 * Node.js has no ioctl either, which unlocking a terminal and setting its size need. A small Perl program that is
 * started once does both on a copy of the worker's descriptor (Perl is part of every Debian). A command that was given
 * the terminal opens it as the leader of a session, which makes it the controlling one.
 */
import { chownSync, closeSync, constants, fstatSync, openSync } from "node:fs";
import { createInterface } from "node:readline";
import { ReadStream } from "node:tty";
import { execa } from "execa";
import { SandgateError } from "../../../shared/errors.ts";
import type { Container } from "../container/container.ts";
import { PipeReader } from "./pipes.ts";
import { pidNamespaceOf } from "./proc.ts";

/** Device number of every `ptmx`: major 5, minor 2. */
const ptmxDevice = 0x502;

/**
 * Each line of input: an id, what to do, a descriptor of the parent, rows and columns. pidfd_open, pidfd_getfd and the
 * ioctls TIOCSPTLCK, TIOCSWINSZ and TIOCGPTN have the same numbers on x86-64 and arm64.
 */
const program = `
use strict; use POSIX ();
$| = 1;
my $parent = getppid();
sub take {
  my $pidfd = syscall(434, $parent, 0);
  die "pidfd_open: $!" if $pidfd < 0;
  my $fd = syscall(438, $pidfd, $_[0] + 0, 0);
  my $reason = "$!";
  POSIX::close($pidfd);
  die "pidfd_getfd: $reason" if $fd < 0;
  open(my $handle, "+<&=", $fd) or die "open: $!";
  return $handle;
}
while (my $line = <STDIN>) {
  my ($id, $verb, $fd, $rows, $cols) = split " ", $line;
  my $answer = eval {
    my $master = take($fd);
    my ($size, $open, $number) = (pack("S4", $rows, $cols, 0, 0), pack("i", 0), pack("I", 0));
    ioctl($master, 0x5414, $size) or die "TIOCSWINSZ: $!";
    return "done" if $verb eq "size";
    ioctl($master, 0x40045431, $open) or die "TIOCSPTLCK: $!";
    ioctl($master, 0x80045430, $number) or die "TIOCGPTN: $!";
    "done " . unpack("I", $number);
  };
  chomp(my $failure = $@);
  print "$id ", $answer // "failed $failure", "\\n";
}
`;

export interface Size {
  readonly cols: number;
  readonly rows: number;
}

function launch() {
  return execa("perl", ["-e", program], { stdio: ["pipe", "pipe", "ignore"], buffer: false, reject: false });
}
type Helper = ReturnType<typeof launch>;

export class Terminals {
  #helper: Helper | undefined;
  #serial = 0;
  readonly #waiting = new Map<string, PromiseWithResolvers<string>>();

  /** A new terminal in a container, for the user of its commands. @throws {SandgateError} `internal_error`, `unavailable`. */
  async open(container: Container, size: Size): Promise<Terminal> {
    if (pidNamespaceOf(container.initPid) !== container.pidNamespace) throw new SandgateError("unavailable", "the sandbox stopped and is started again");
    const folder = `/proc/${container.initPid}/root/dev/pts`;
    const fd = openSync(`${folder}/ptmx`, constants.O_RDWR | constants.O_NOCTTY | constants.O_NONBLOCK);
    try {
      if (fstatSync(fd).rdev !== ptmxDevice) throw new SandgateError("internal_error", "the sandbox has no terminals");
      const number = await this.#ask("open", fd, size);
      const { uid = 0 } = (container.process.user ?? {}) as { uid?: number };
      chownSync(`${folder}/${number}`, uid, -1);
      const slaveFd = openSync(`${folder}/${number}`, constants.O_RDWR | constants.O_NOCTTY | constants.O_NONBLOCK);
      return new Terminal(`/dev/pts/${number}`, { fd, slaveFd, setSize: (next) => this.#ask("size", fd, next) });
    } catch (error) {
      closeSync(fd);
      throw error;
    }
  }

  #ask(verb: "open" | "size", fd: number, { rows, cols }: Size): Promise<string> {
    const id = String(this.#serial++);
    const waiting = Promise.withResolvers<string>();
    this.#waiting.set(id, waiting);
    this.#helper ??= this.#startHelper();
    this.#helper.stdin.write(`${id} ${verb} ${fd} ${rows} ${cols}\n`);
    return waiting.promise;
  }

  #startHelper(): Helper {
    const helper = launch();
    helper.stdin.on("error", () => {});
    createInterface({ input: helper.stdout }).on("line", (line) => this.#hear(line));
    void helper.then((result) => this.#ended(result));
    return helper;
  }

  #hear(line: string): void {
    const [id = "", outcome, ...rest] = line.split(" ");
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (outcome === "done") waiting?.resolve(rest.join(" "));
    else waiting?.reject(new SandgateError("internal_error", "a terminal could not be set up", { cause: new Error(rest.join(" ")) }));
  }

  /** The next one who asks starts another. */
  #ended(cause: unknown): void {
    this.#helper = undefined;
    for (const waiting of this.#waiting.values()) waiting.reject(new SandgateError("internal_error", "terminals cannot be set up on this host", { cause }));
    this.#waiting.clear();
  }
}

/** The worker's side of one terminal. */
export class Terminal {
  /** Its name in the container. */
  readonly path: string;
  readonly reader: PipeReader;
  readonly fd: number;
  /** Kept open, so that the end of all others is no error that loses what was read last. The command's own end counts. */
  readonly #slaveFd: number;
  readonly #setSize: (size: Size) => Promise<unknown>;
  #resizing: Promise<unknown> = Promise.resolve();
  #closed = false;

  constructor(path: string, { fd, slaveFd, setSize }: { fd: number; slaveFd: number; setSize: (size: Size) => Promise<unknown> }) {
    this.path = path;
    this.fd = fd;
    this.#slaveFd = slaveFd;
    this.#setSize = setSize;
    this.reader = new PipeReader(fd, new ReadStream(fd));
  }

  /** The foreground processes are told by SIGWINCH. */
  resize(size: Size): void {
    if (!this.#closed) this.#resizing = Promise.all([this.#resizing, this.#setSize(size)]).catch(() => {});
  }

  /** Hangs up. Not while the helper may still be asked about the descriptor, which somebody else could have by then. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    void this.#resizing.then(() => {
      closeSync(this.#slaveFd);
      this.reader.close();
    });
  }
}
