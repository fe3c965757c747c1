/** Real pipes for the standard streams of programs: Node gives its children sockets, on which `> /dev/stderr` fails. */
import { closeSync, fchmodSync, readSync } from "node:fs";
import { Socket, type SocketConstructorOpts } from "node:net";
import type { Writable } from "node:stream";
import { attempt } from "../../../shared/util/attempt.ts";
import { letWait, openPipe, type Pipe } from "../../../shared/util/libc.ts";
import { AsideReader, chunkBytesMax, dropAside } from "./aside.ts";
import type { Descriptors } from "./program.ts";

/** A reader that has had so many chunks is read aside from then on: by far most commands write fewer. */
const inlineChunksMax = 3;
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

interface StreamOptions<HasInput extends boolean> {
  readonly hasInput: HasInput;
  /** The sandbox in which the program will run; undefined for one of the host. */
  readonly owner?: object;
}

/** Opens new pipes, all or none. @throws {Error} */
export function openStreams(options: StreamOptions<true>): Streams<number>;
export function openStreams(options: StreamOptions<boolean>): Streams<number | undefined>;
export function openStreams({ hasInput, owner }: StreamOptions<boolean>): Streams<number | undefined> {
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
      stdout: new PipeReader(stdout.readFd, undefined, owner),
      stderr: new PipeReader(stderr.readFd, undefined, owner),
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
  readonly #owner: object | undefined;
  readonly #aside: AsideReader | undefined;
  #chunks = 0;
  #isClosing = false;

  /**
   * @param open opens it at once: for what has nothing to read at first, or is no pipe
   * @param owner the sandbox that writes, whose long output is read aside
   */
  constructor(fd: number, open?: (reading: Reading) => Socket, owner?: object) {
    this.#fd = fd;
    this.#owner = owner;
    this.#aside = owner && new AsideReader(owner, fd);
    if (open) this.#opened(open);
  }

  /** The next bytes, valid until it is asked for more, or undefined at the end. @param roomBytes what there is room for, which may be had at once of a long output */
  async next(roomBytes = chunkBytesMax): Promise<Buffer | undefined> {
    for (;;) {
      if (this.#leftoverBytes !== undefined && this.#leftoverBytes <= 0) return undefined;
      const chunk = this.#kept() ?? (this.#isLong ? await this.#aside?.next(() => this.#leftoverBytes !== undefined, roomBytes) : this.#there());
      if (chunk === "end") this.#release();
      else if (chunk) return this.#given(chunk);
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
    if (!first || first.length >= chunkBytesMax / 2 || this.#leftoverBytes !== undefined || this.#isClosed || this.#isLong) return first;
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

  /** Resolves when the writer may be read on after so many bytes that nobody gets. @throws the reason of the signal */
  async drop(bytes: number, signal?: AbortSignal): Promise<void> {
    if (this.#owner) await dropAside(this.#owner, bytes, signal);
  }

  close(): void {
    this.#isClosing = true;
    if (this.#aside) this.#aside.close(() => this.#release());
    else this.#release();
  }

  #release(): void {
    if (this.#socket) this.#socket.destroy();
    else if (!this.#closed) closeSync(this.#fd);
    if (!this.#socket) this.#closed = true;
  }

  get #isClosed(): boolean {
    return this.#closed || this.#isClosing || this.#socket?.destroyed === true;
  }

  /** Whether the output is long, and a sandbox's. */
  get #isLong(): boolean {
    return this.#aside !== undefined && this.#chunks >= inlineChunksMax;
  }

  /** What was read and not taken. */
  #kept(): Buffer | undefined {
    const chunk = this.#chunk;
    this.#chunk = undefined;
    return chunk;
  }

  #given(chunk: Buffer): Buffer {
    if (this.#leftoverBytes !== undefined) this.#leftoverBytes -= chunk.length;
    this.#chunks++;
    return chunk;
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
    if (length === 0 && !this.#socket) this.#release();
    return length ? this.#landed(length) : undefined;
  }

  #landed(length: number): Buffer {
    return this.#isSkipping ? landing.subarray(0, length) : landed(length);
  }
}
