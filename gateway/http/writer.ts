/** Bodies that go out in pieces, at the client's speed: `write` resolves when the socket has room for more. */
import { SandgateError } from "../../shared/errors.ts";
import type { Exchange, Headers } from "./exchange.ts";

const clientGone = (): SandgateError => new SandgateError("unavailable", "the client went away");

export class BodyWriter {
  readonly #exchange: Exchange;
  readonly #totalBytes: number | undefined;
  readonly #stallMs: number;
  #wait: { resolve: () => void; reject: (error: SandgateError) => void } | undefined;

  /**
   * Sends status and headers.
   *
   * @param totalBytes sent as Content-Length; undefined for a chunked body.
   * @param stallMs a client that takes nothing for this long is cut off.
   */
  constructor(exchange: Exchange, options: { contentType: string; headers?: Headers; totalBytes?: number | undefined; stallMs: number }) {
    this.#exchange = exchange;
    this.#totalBytes = options.totalBytes;
    this.#stallMs = options.stallMs;
    exchange.onAbort(() => this.#wait?.reject(clientGone()));
    if (exchange.aborted) return;
    exchange.raw.cork(() => exchange.begin(200, options.contentType, options.headers ?? {}));
  }

  /** @throws {SandgateError} when the client is gone or takes nothing. */
  async write(chunk: Uint8Array): Promise<void> {
    if (this.#exchange.aborted) throw clientGone();
    if (this.#totalBytes === undefined) await this.#writeChunked(chunk);
    else await this.#writeCounted(chunk, this.#totalBytes);
  }

  /** The end of a chunked body, or of a counted one without bytes. */
  end(): void {
    if (this.#exchange.aborted) return;
    if (this.#totalBytes === undefined || this.#totalBytes === 0) this.#exchange.raw.cork(() => this.#exchange.raw.end());
    this.#exchange.finished();
  }

  /** Breaks the connection, so that the client sees that the body is not whole. */
  cut(): void {
    if (!this.#exchange.aborted) this.#exchange.raw.close();
  }

  async #writeChunked(chunk: Uint8Array): Promise<void> {
    const response = this.#exchange.raw;
    let hasRoom = true;
    response.cork(() => {
      hasRoom = response.write(chunk);
    });
    if (hasRoom) return;
    await this.#room((resolve) =>
      response.onWritable(() => {
        resolve();
        return true;
      }),
    );
  }

  async #writeCounted(chunk: Uint8Array, totalBytes: number): Promise<void> {
    const response = this.#exchange.raw;
    const offset = response.getWriteOffset();
    let [hasRoom] = response.tryEnd(chunk, totalBytes);
    if (hasRoom) return;
    await this.#room((resolve) =>
      response.onWritable((sentBytes) => {
        [hasRoom] = response.tryEnd(chunk.subarray(sentBytes - offset), totalBytes);
        if (hasRoom) resolve();
        return hasRoom;
      }),
    );
  }

  async #room(listen: (resolve: () => void) => void): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#wait = { resolve, reject };
    const timer = setTimeout(() => this.cut(), this.#stallMs);
    listen(resolve);
    try {
      await promise;
    } finally {
      clearTimeout(timer);
      this.#wait = undefined;
    }
  }
}
