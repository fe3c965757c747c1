/** Request bodies: held back from the first byte, so that none is lost and none piles up before somebody reads. */
import type { HttpResponse } from "uWebSockets.js";
import { SandgateError } from "../../shared/errors.ts";

/** Paused by us beyond this many waiting bytes, taken up again below half of it. */
const waitingBytesMax = 256 * 1024;

export interface BodyReader {
  /** From the Content-Length header; undefined for a chunked body. */
  readonly length: number | undefined;
  /** Whether the whole body has arrived. */
  readonly finished: boolean;
  /** The body in pieces, each yielded piece a copy that is the reader's. Throws when the client goes away. */
  chunks(): AsyncGenerator<Buffer>;
  /** The whole body. @throws {SandgateError} `payload_too_large` beyond the bound. */
  whole(bytesMax: number): Promise<Buffer>;
  /** The answer has begun: what is still to come is dropped as it arrives. */
  discard(): void;
  /** Drops the body. Resolves at its end, or when that is too far away; at once when the client is gone. */
  dropped(bytesMax: number, waitMs: number): Promise<void>;
  /** Bytes still to come, as far as the client has told; 0 for a chunked body. */
  readonly restBytes: number;
}

/** Starts to take the body; must be called before the request handler returns. */
export function readerOf(response: HttpResponse, framing: Framing, onAbort: (listener: () => void) => void): BodyReader {
  return new UwsBody(response, framing, onAbort);
}

/** Of a request without a body, or with one that nobody reads: uWS drops its bytes then. */
export const noBody: BodyReader = {
  length: undefined,
  finished: true,
  restBytes: 0,
  async *chunks() {},
  whole: async () => Buffer.alloc(0),
  discard: () => {},
  dropped: async () => {},
};

/** A body as JSON; an empty one as an object without fields. @throws {SandgateError} `invalid_request`, `payload_too_large`. */
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

/** The headers that say whether there is a body. */
interface Framing {
  readonly length: string;
  readonly encoding: string;
}

class UwsBody implements BodyReader {
  readonly length: number | undefined;
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

  get restBytes(): number {
    return this.finished ? 0 : Math.max(0, (this.length ?? 0) - this.#receivedBytes);
  }

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

  discard(): void {
    if (this.#discarded) return;
    this.#waiting = [];
    this.#waitingBytes = 0;
    this.#resume();
    this.#discarded = true;
    this.#notify();
  }

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
    // uWS goes on to call back after the answer, when its response must not be touched any more.
    if (this.#discarded) return this.#onDropped?.(chunk.byteLength);
    // uWS takes its memory back when this returns.
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
