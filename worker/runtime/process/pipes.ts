/** Real pipes for the standard streams of programs: Node gives its children sockets, on which `> /dev/stderr` fails. */
import { closeSync, fchmodSync, readSync } from "node:fs";
import { Socket } from "node:net";
import type { Writable } from "node:stream";
import { attempt } from "../../../shared/util/attempt.ts";
import { letWait, openPipe, type Pipe } from "../../../shared/util/libc.ts";
import type { Descriptors } from "./program.ts";

const chunkBytesMax = 64 * 1024;
/** The most that a pipe holds (Linux, unprivileged). */
const pipeBytesMax = 1024 * 1024;

/** Pipes for the standard streams of a program. */
export interface Streams<StdinFd> {
  readonly stdout: PipeReader;
  readonly stderr: PipeReader;
  /** Our end of its input, non-blocking; undefined when it has none. */
  readonly stdinFd: StdinFd;
  /** The program's ends. */
  readonly theirs: Descriptors;
}

/** Opens new pipes, all or none. @throws {Error} */
export function openStreams(options: { readonly hasInput: true }): Streams<number>;
export function openStreams(options: { readonly hasInput: boolean }): Streams<number | undefined>;
export function openStreams({ hasInput }: { readonly hasInput: boolean }): Streams<number | undefined> {
  const opened: Pipe[] = [];
  const open = (theirs: keyof Pipe): Pipe => {
    const pipe = openPipe();
    opened.push(pipe);
    letWait(pipe[theirs]);
    // A command may run as another user than the worker, and opens its streams by their names in /dev.
    fchmodSync(pipe.writeFd, 0o666);
    return pipe;
  };
  try {
    const [stdout, stderr, stdin] = [open("writeFd"), open("writeFd"), hasInput ? open("readFd") : undefined];
    return {
      stdout: new PipeReader(stdout.readFd),
      stderr: new PipeReader(stderr.readFd),
      stdinFd: stdin?.writeFd,
      theirs: { stdout: stdout.writeFd, stderr: stderr.writeFd, ...(stdin && { stdin: stdin.readFd }) },
    };
  } catch (error) {
    for (const { readFd, writeFd } of opened) [readFd, writeFd].forEach((fd) => closeSync(fd));
    throw error;
  }
}

/** Resolves when the stream accepts more, or never will. */
export function drained(stream: Writable): Promise<void> {
  return new Promise((resolve) => {
    if (stream.destroyed) return resolve();
    const done = (): void => {
      stream.off("drain", done).off("close", done);
      resolve();
    };
    stream.on("drain", done).on("close", done);
  });
}

/** Our end of an input as a stream. */
export const writerOf = (stdinFd: number): Socket => new Socket({ fd: stdinFd, readable: false, writable: true });

/** Reads a pipe, or the master of a terminal, chunk by chunk. It reads at most one chunk ahead, so a slow reader slows the writer. */
export class PipeReader {
  readonly #fd: number;
  readonly #socket: Socket;
  #closed = false;
  /** Once the command has exited: bytes that may still be its own. */
  #leftoverBytes: number | undefined;
  #wake: (() => void) | undefined;

  /** @param socket the descriptor as a stream; created here for a pipe. */
  constructor(fd: number, socket: Socket = new Socket({ fd, readable: true, writable: false })) {
    this.#fd = fd;
    this.#socket = socket;
    const wake = (): void => this.#wake?.();
    this.#socket
      .on("readable", wake)
      .on("error", wake)
      .on("close", () => {
        this.#closed = true;
        wake();
      });
  }

  /** The next bytes, or undefined at the end. */
  async next(): Promise<Buffer | undefined> {
    for (;;) {
      if (this.#leftoverBytes !== undefined && this.#leftoverBytes <= 0) return undefined;
      const chunk = (this.#socket.read() as Buffer | null) ?? this.#leftover();
      if (chunk && this.#leftoverBytes !== undefined) this.#leftoverBytes -= chunk.length;
      if (chunk) return chunk;
      if (this.#closed || this.#socket.destroyed || this.#leftoverBytes !== undefined) return undefined;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  /** Like `next`, plus whatever else is already there: a terminal gives only 4 KiB at a time. */
  async nextBatch(): Promise<Buffer | undefined> {
    const first = await this.next();
    if (!first || first.length >= chunkBytesMax / 2 || this.#leftoverBytes !== undefined || this.#closed || this.#socket.destroyed) return first;
    const batch = Buffer.allocUnsafe(chunkBytesMax);
    let length = first.copy(batch);
    try {
      for (let more = 1; more > 0 && length < batch.length; length += more) more = readSync(this.#fd, batch, length, batch.length - length, null);
    } catch {
      // EAGAIN: that was all. Any other error will occur again in the next read.
    }
    return batch.subarray(0, length);
  }

  /** The command has exited: reads what is left in the pipe, without waiting for what other processes may still write. */
  writerExited(): void {
    this.#leftoverBytes = pipeBytesMax + this.#socket.readableLength;
    this.#wake?.();
  }

  close(): void {
    this.#socket.destroy();
  }

  /** What is in the pipe once the command has exited. */
  #leftover(): Buffer | undefined {
    if (this.#leftoverBytes === undefined || this.#closed || this.#socket.destroyed) return undefined;
    const chunk = Buffer.allocUnsafe(chunkBytesMax);
    // EAGAIN: the pipe is empty.
    const length = attempt(() => readSync(this.#fd, chunk, 0, chunk.length, null)) ?? 0;
    return length > 0 ? chunk.subarray(0, length) : undefined;
  }
}
