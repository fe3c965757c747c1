/** Real pipes for the standard streams of programs: Node gives its children sockets, on which `> /dev/stderr` fails. */
import { closeSync, fchmodSync, readSync } from "node:fs";
import { Socket, type SocketConstructorOpts } from "node:net";
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

/** What one read takes goes here first: all readers share it, because each copies at once what it has read. */
const landing = Buffer.allocUnsafeSlow(chunkBytesMax);
const landed = (length: number): Buffer => Buffer.from(landing.subarray(0, length));

/** How a reader opens its descriptor as a stream. */
type Reading = Pick<SocketConstructorOpts, "onread">;

/** Our end of an output as a stream. */
export const pipeSocket = (fd: number, reading: Reading): Socket => new Socket({ fd, readable: true, writable: false, ...reading });

/**
 * Reads a pipe, or the master of a terminal, chunk by chunk, and only when it is asked to: what a slow reader does not take stays
 * in the pipe, costs this process nothing, and slows the writer.
 */
export class PipeReader {
  readonly #fd: number;
  /** Opened when there is something to wait for: many a command has ended before it is asked for its output, and needs none. */
  #socket: Socket | undefined;
  #closed = false;
  /** Read and not taken yet. */
  #chunk: Buffer | undefined;
  /** Once the command has exited: bytes that may still be its own. */
  #leftoverBytes: number | undefined;
  /** Only the number of bytes is asked for. */
  #isSkipping = false;
  #wake: (() => void) | undefined;
  #isAsked = false;

  /** @param open opens it at once: for what has nothing to read at first, or is no pipe */
  constructor(fd: number, open?: (reading: Reading) => Socket) {
    this.#fd = fd;
    if (open) this.#opened(open);
  }

  /** The next bytes, or undefined at the end. */
  async next(): Promise<Buffer | undefined> {
    for (;;) {
      if (this.#leftoverBytes !== undefined && this.#leftoverBytes <= 0) return undefined;
      const chunk = this.#chunk ?? this.#there();
      this.#chunk = undefined;
      if (chunk && this.#leftoverBytes !== undefined) this.#leftoverBytes -= chunk.length;
      if (chunk) return chunk;
      if (this.#isClosed || this.#leftoverBytes !== undefined) return undefined;
      (this.#socket ?? this.#opened((reading) => pipeSocket(this.#fd, reading))).resume();
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  /** As `next`, of bytes that nobody wants, which are not copied: how many they are, or undefined at the end. */
  async skip(): Promise<number | undefined> {
    this.#isSkipping = true;
    const chunk = await this.next();
    this.#isSkipping = false;
    return chunk?.length;
  }

  /** Like `next`, plus whatever else is already there: a terminal gives only 4 KiB at a time. */
  async nextBatch(): Promise<Buffer | undefined> {
    const first = await this.next();
    if (!first || first.length >= chunkBytesMax / 2 || this.#leftoverBytes !== undefined || this.#isClosed) return first;
    let length = first.copy(landing);
    try {
      for (let more = 1; more > 0 && length < landing.length; length += more) more = readSync(this.#fd, landing, length, landing.length - length, null);
    } catch {
      // EAGAIN: that was all. Any other error will occur again in the next read.
    }
    return length > first.length ? landed(length) : first;
  }

  /** The command has exited: reads what is left in the pipe, without waiting for what other processes may still write. */
  writerExited(): void {
    this.#leftoverBytes = pipeBytesMax + (this.#chunk?.length ?? 0);
    this.#socket?.pause();
    this.#wake?.();
  }

  close(): void {
    if (this.#socket) this.#socket.destroy();
    else if (!this.#closed) closeSync(this.#fd);
    if (!this.#socket) this.#closed = true;
  }

  get #isClosed(): boolean {
    return this.#closed || this.#socket?.destroyed === true;
  }

  #opened(open: (reading: Reading) => Socket): Socket {
    const socket = open({ onread: { buffer: landing, callback: (length) => this.#take(length) } });
    this.#socket = socket;
    socket.pause();
    const wake = (): void => this.#wake?.();
    return socket.on("error", wake).on("close", () => {
      this.#closed = true;
      wake();
    });
  }

  /** @returns false: no more until that is taken */
  #take(length: number): boolean {
    const chunk = this.#landed(length);
    this.#chunk = this.#chunk ? Buffer.concat([this.#chunk, chunk]) : chunk;
    this.#wake?.();
    return false;
  }

  /** What is in the pipe already: looked for once, and whenever nothing is waited for because the command has exited. */
  #there(): Buffer | undefined {
    const isAsked = this.#isAsked || this.#socket !== undefined;
    this.#isAsked = true;
    if (this.#isClosed || (isAsked && this.#leftoverBytes === undefined)) return undefined;
    // EAGAIN: the pipe is empty.
    const length = attempt(() => readSync(this.#fd, landing, 0, landing.length, null));
    if (length === 0 && !this.#socket) this.close();
    return length ? this.#landed(length) : undefined;
  }

  #landed(length: number): Buffer {
    return this.#isSkipping ? landing.subarray(0, length) : landed(length);
  }
}
