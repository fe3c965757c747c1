/** Request bodies with backpressure from the first byte: nothing is lost, and little is buffered, before a handler reads. */
import type { HttpResponse } from "uWebSockets.js";
import { SandgateError } from "../../shared/errors.ts";

/** The connection is paused when more bytes than this are buffered, and resumed at half of it. */
const waitingBytesMax = 256 * 1024;

/** The body of a request. */
export type BodyReader = Pick<UwsBody, "length" | "finished" | "restBytes" | "chunks" | "whole" | "discard" | "dropped">;

/** For a request without a body, or whose body is never read: uWS then drops the bytes. */
export const noBody: BodyReader = {
  length: undefined,
  finished: true,
  restBytes: 0,
  async *chunks() {},
  whole: async () => Buffer.alloc(0),
  discard: () => {},
  dropped: async () => {},
};

/** Parses a JSON body; an empty body gives `{}`. @throws {SandgateError} `invalid_request`, `payload_too_large`. */
export async function readJson(body: BodyReader, contentType: string, bytesMax: number): Promise<unknown> {
  const bytes = await body.whole(bytesMax);
  if (bytes.length === 0) return {};
  const type = contentType.split(";")[0]?.trim().toLowerCase();
  if (type && type !== "application/json") throw new SandgateError("invalid_request", "the Content-Type must be application/json");
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch (cause) {
    throw new SandgateError("invalid_request", "the request body is not valid JSON", { cause });
  }
}

/** The headers that tell whether the request has a body. */
interface Framing {
  readonly length: string;
  readonly encoding: string;
}

/** A body that is being received; made before the request handler returns. */
export class UwsBody {
  /** From the Content-Length header; undefined for a chunked body. */
  readonly length: number | undefined;
  /** Whether the whole body has arrived. */
  finished: boolean;
  readonly #response: HttpResponse;
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  #receivedBytes = 0;
  #paused = false;
  #aborted = false;
  #discarded = false;
  #wake: (() => void) | undefined;
  #onDropped: ((bytes: number) => void) | undefined;

  constructor(response: HttpResponse, { length, encoding }: Framing, onAbort: (listener: () => void) => void) {
    this.#response = response;
    this.length = /^\d{1,15}$/.test(length) ? Number(length) : undefined;
    this.finished = !this.length && !encoding;
    if (this.finished) return;
    response.onData((chunk, isLast) => this.#take(chunk, isLast));
    onAbort(() => {
      this.#aborted = true;
      this.#onDropped?.(0);
      this.#notify();
    });
  }

  /** Bytes still to come according to Content-Length; 0 for a chunked body. */
  get restBytes(): number {
    return this.finished ? 0 : Math.max(0, (this.length ?? 0) - this.#receivedBytes);
  }

  /** The body in chunks. Each chunk is a copy that belongs to the caller. Throws when the client disconnects. */
  async *chunks(): AsyncGenerator<Buffer> {
    for (;;) {
      if (this.#discarded) throw new SandgateError("invalid_request", "the request was answered before its body was read");
      if (this.#aborted) throw new SandgateError("invalid_request", "the client went away before its request was complete");
      const chunk = this.#waiting.shift();
      if (chunk) {
        this.#waitingBytes -= chunk.length;
        this.#resume();
        yield chunk;
      } else if (this.finished) {
        return;
      } else {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    }
  }

  /** The whole body. @throws {SandgateError} `payload_too_large` when it exceeds `bytesMax`. */
  async whole(bytesMax: number): Promise<Buffer> {
    const tooLarge = new SandgateError("payload_too_large", `the request body must be at most ${bytesMax} bytes`);
    if ((this.length ?? 0) > bytesMax) throw tooLarge;
    const parts: Buffer[] = [];
    let bytes = 0;
    for await (const chunk of this.chunks()) {
      bytes += chunk.length;
      if (bytes > bytesMax) throw tooLarge;
      parts.push(chunk);
    }
    return Buffer.concat(parts);
  }

  /** Drops the buffered bytes and all that arrive later. Called when the response begins. */
  discard(): void {
    if (this.#discarded) return;
    this.#waiting = [];
    this.#waitingBytes = 0;
    this.#resume();
    this.#discarded = true;
    this.#notify();
  }

  /** Discards the body. Resolves at its end, after `bytesMax` bytes or `waitMs`; at once when the client has disconnected. */
  dropped(bytesMax: number, waitMs: number): Promise<void> {
    this.discard();
    if (this.finished || this.#aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        this.#onDropped = undefined;
        resolve();
      };
      const timer = setTimeout(done, waitMs);
      let bytes = 0;
      this.#onDropped = (more) => {
        bytes += more;
        if (this.finished || this.#aborted || bytes > bytesMax) done();
      };
    });
  }

  #take(chunk: ArrayBuffer, isLast: boolean): void {
    this.finished = isLast;
    this.#receivedBytes += chunk.byteLength;
    // uWS keeps calling back after the response has ended, when the response object must not be used any more.
    if (this.#discarded) return this.#onDropped?.(chunk.byteLength);
    // The chunk's memory belongs to uWS and is reused after this returns.
    if (chunk.byteLength > 0) {
      this.#waiting.push(Buffer.from(chunk.slice(0)));
      this.#waitingBytes += chunk.byteLength;
    }
    if (!isLast && !this.#paused && this.#waitingBytes > waitingBytesMax) {
      this.#paused = true;
      this.#response.pause();
    }
    this.#notify();
  }

  #resume(): void {
    if (!this.#paused || this.#aborted || this.#waitingBytes > waitingBytesMax / 2) return;
    this.#paused = false;
    this.#response.resume();
  }

  #notify(): void {
    this.#wake?.();
    this.#wake = undefined;
  }
}
