/** A command whose output is read while it runs. */

import { Deadline } from "../abort.ts";
import type { StreamLine } from "../schemas/executions.ts";
import { deferred } from "../waiting.ts";
import { APIConnectionError, errorOfStream, SandgateError } from "./errors.ts";
import type { WireAnswer } from "./transport.ts";
import type { OutputChunk } from "./types.ts";

export interface OutputHandlers {
  /** Called for every piece of output. If it returns a promise, the next piece waits for it. */
  onStdout?: ((text: string) => unknown) | undefined;
  onStderr?: ((text: string) => unknown) | undefined;
}

export interface ExecutionEnd {
  /** The command's exit code: `128+n` when signal n ended it, 124 when its timeout expired. */
  exit_code: number;
}

const left = (): SandgateError => new SandgateError("the command was ended because its output is no longer read");

/**
 * A running command. Its output is either iterated over or passed to `onStdout` and `onStderr`; reading slowly slows the
 * command down. Leaving the loop, `abort()` and the signal end the command and every process it started.
 */
export class Execution implements AsyncIterable<OutputChunk> {
  readonly #handlers: OutputHandlers;
  readonly #answer: Promise<WireAnswer>;
  readonly #running: Deadline;
  readonly #end = deferred<ExecutionEnd>();
  #isRead = false;

  /** @param open sends the command; its signal ends it */
  constructor(open: (signal: AbortSignal) => Promise<WireAnswer>, handlers: OutputHandlers, signal: AbortSignal | undefined) {
    this.#running = new Deadline(signal);
    this.#handlers = handlers;
    this.#answer = open(this.#running.signal);
    const settled = (): void => this.#running.release();
    this.#end.promise.then(settled, settled);
    this.#answer.catch(this.#end.reject);
    if (handlers.onStdout || handlers.onStderr) void this.result;
  }

  /**
   * Resolves when the command has ended. Its output is passed to `onStdout` and `onStderr`, unless it is iterated over.
   *
   * @throws {APIError} if the command could not be run to its end
   */
  get result(): Promise<ExecutionEnd> {
    this.#answer.then(() => (this.#isRead ? undefined : this.#drain())).catch(() => {});
    return this.#end.promise;
  }

  /** Ends the command. */
  abort(reason: unknown = left()): void {
    this.#running.abort(reason);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<OutputChunk, void> {
    if (this.#isRead) throw new SandgateError("the output can be read only once");
    this.#isRead = true;
    let isDone = false;
    try {
      const { body, headers } = await this.#answer;
      for await (const line of linesOf(body)) {
        const end = endOf(line, headers);
        if (end) this.#end.resolve(end);
        else yield* this.#pass(line);
      }
      this.#end.reject(new APIConnectionError("the stream ended without the command's exit code", { headers }));
      isDone = true;
    } catch (error) {
      isDone = true;
      this.#end.reject(error);
      throw error;
    } finally {
      if (!isDone) this.#end.reject(left());
      this.#running.abort(left());
    }
    await this.#end.promise;
  }

  async *#pass({ stdout, stderr }: StreamLine): AsyncGenerator<OutputChunk, void> {
    if (stdout) {
      await this.#handlers.onStdout?.(stdout);
      yield { stdout };
    }
    if (stderr) {
      await this.#handlers.onStderr?.(stderr);
      yield { stderr };
    }
  }

  async #drain(): Promise<void> {
    for await (const _chunk of this) {
      // The output has been passed to the handlers.
    }
  }
}

/** @throws {APIError} for a line that reports an error */
function endOf({ exit_code, error, code, reason }: StreamLine, headers: Headers): ExecutionEnd | undefined {
  if (error !== undefined) throw errorOfStream({ message: error, code, reason }, headers);
  return exit_code === undefined ? undefined : { exit_code };
}

/** The lines of a stream. @throws {APIConnectionError} if the last one is incomplete */
export async function* linesOf(body: AsyncIterable<Uint8Array>): AsyncGenerator<StreamLine> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const bytes of body) {
    const parts = (rest + decoder.decode(bytes, { stream: true })).split("\n");
    rest = parts.pop() ?? "";
    for (const part of parts) if (part.trim()) yield parsed(part);
  }
  if (rest.trim()) throw new APIConnectionError("the stream ended inside a line");
}

function parsed(text: string): StreamLine {
  try {
    return JSON.parse(text) as StreamLine;
  } catch (cause) {
    throw new APIConnectionError("the stream has a line that is not JSON", {}, cause);
  }
}
