/**
 * Real pipes for the output of commands. Node gives its children sockets, on which `> /dev/stderr` fails,
 * so named pipes are made in batches and lose their name as soon as both ends are open.
 */
import { closeSync, constants, mkdirSync, openSync, readdirSync, readSync, unlinkSync } from "node:fs";
import { Socket } from "node:net";
import { join } from "node:path";
import { SandgateError } from "../../../shared/errors.ts";
import { run } from "./run.ts";

const batch = 64;
const chunkBytesMax = 64 * 1024;
/** A pipe holds at most this much (Linux, unprivileged). */
const pipeBytesMax = 1024 * 1024;

/** One end to read for us, and a descriptor for a child, to be closed with `closeSync` once it has started. */
export interface Pipe {
  readonly reader: PipeReader;
  readonly writeFd: number;
}

/** Hands out pipes, making new ones in the background before they run out. */
export class PipePool {
  readonly #dir: string;
  #names: string[] = [];
  #serial = 0;
  #refill: Promise<void> | undefined;

  constructor(dir: string) {
    mkdirSync(dir, { recursive: true, mode: 0o711 });
    for (const leftover of readdirSync(dir)) unlinkSync(join(dir, leftover));
    this.#dir = dir;
  }

  /** Two new pipes; neither is left open when the other cannot be had. */
  async takeTwo(): Promise<[Pipe, Pipe]> {
    const first = await this.#take();
    try {
      return [first, await this.#take()];
    } catch (error) {
      closeSync(first.writeFd);
      first.reader.close();
      throw error;
    }
  }

  /** A new pipe into a child. Both ends are ours until it has opened its own; writing does not wait for room. */
  async takeInput(): Promise<{ readFd: number; writeFd: number }> {
    const name = await this.#name();
    const readFd = openSync(name, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      return { readFd, writeFd: openSync(name, constants.O_WRONLY | constants.O_NONBLOCK) };
    } catch (error) {
      closeSync(readFd);
      throw error;
    } finally {
      unlinkSync(name);
    }
  }

  async #name(): Promise<string> {
    while (this.#names.length === 0) await this.#makeMore();
    const name = this.#names.pop() as string;
    if (this.#names.length < batch / 4) void this.#makeMore().catch(() => {});
    return name;
  }

  async #take(): Promise<Pipe> {
    const name = await this.#name();
    const readFd = openSync(name, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      const writeFd = openSync(name, constants.O_WRONLY);
      return { reader: new PipeReader(readFd), writeFd };
    } catch (error) {
      closeSync(readFd);
      throw error;
    } finally {
      unlinkSync(name);
    }
  }

  #makeMore(): Promise<void> {
    this.#refill ??= this.#make().finally(() => {
      this.#refill = undefined;
    });
    return this.#refill;
  }

  async #make(): Promise<void> {
    const names = Array.from({ length: batch }, () => join(this.#dir, `p${process.pid}-${this.#serial++}`));
    const result = await run("mkfifo", ["-m", "666", ...names], { timeoutMs: 10_000 });
    if (result.exitCode !== 0) throw new SandgateError("internal_error", "pipes could not be made", { cause: new Error(result.stderr) });
    this.#names.push(...names);
  }
}

/** Reads a pipe, or the master of a terminal, chunk by chunk; nothing is read ahead beyond one chunk, so a slow reader slows the writer. */
export class PipeReader {
  readonly #fd: number;
  readonly #socket: Socket;
  #closed = false;
  /** Bytes that may still be the command's own, once it has exited. */
  #leftoverBytes: number | undefined;
  #wake: (() => void) | undefined;

  /** @param socket the descriptor as a stream; made here for a pipe. */
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

  /** Like `next`, with what else is there already: a terminal gives 4 KiB at a time. */
  async nextBatch(): Promise<Buffer | undefined> {
    const first = await this.next();
    if (!first || first.length >= chunkBytesMax / 2 || this.#leftoverBytes !== undefined || this.#closed || this.#socket.destroyed) return first;
    const batch = Buffer.allocUnsafe(chunkBytesMax);
    let length = first.copy(batch);
    try {
      for (let more = 1; more > 0 && length < batch.length; length += more) more = readSync(this.#fd, batch, length, batch.length - length, null);
    } catch {
      // EAGAIN: that was all. Anything else is met again by whoever waits for more.
    }
    return batch.subarray(0, length);
  }

  /** The command has exited: what is in the pipe is read to the end, what others may still write is not waited for. */
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
    try {
      const length = readSync(this.#fd, chunk, 0, chunk.length, null);
      return length > 0 ? chunk.subarray(0, length) : undefined;
    } catch {
      return undefined; // EAGAIN: the pipe is empty.
    }
  }
}
