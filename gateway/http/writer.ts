/** Bodies that go out in pieces, at the client's speed: `write` resolves when the socket has room for more. */
import { SandgateError } from "../../shared/errors.ts";
import type { Exchange, Headers } from "./exchange.ts";
import { clientGone } from "./received.ts";

export class BodyWriter {
  readonly #exchange: Exchange;
  readonly #totalBytes: number | undefined;
  readonly #stallMs: number;
  #writtenBytes = 0;
  /** The last announced byte is out: uWS has finished the response, which must not be touched any more. */
  #complete = false;
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
    exchange.onAbort((reason) => this.#wait?.reject(reason));
    if (exchange.aborted) return;
    const closing = exchange.closes ? { connection: "close" } : {};
    exchange.corked(() => exchange.begin(200, options.contentType, { ...options.headers, ...closing }));
    // The end of the answer can then be written by `tryEnd`, which cannot close the connection.
    if (options.totalBytes !== undefined) this.#readNoMore();
  }

  /** @throws {SandgateError} when the client is gone or takes nothing, or when this is more than was announced. */
  async write(chunk: Uint8Array): Promise<void> {
    if (this.#exchange.aborted) throw clientGone();
    this.#writtenBytes += chunk.length;
    // Bytes beyond the Content-Length would be read by the client as the answer to its next request.
    if (this.#writtenBytes > (this.#totalBytes ?? Number.POSITIVE_INFINITY)) throw new SandgateError("internal_error", "more bytes than were announced");
    if (this.#totalBytes === undefined) await this.#writeChunked(chunk);
    else await this.#writeCounted(chunk, this.#totalBytes);
  }

  /** The end of the body. One that is shorter than was announced breaks the connection. */
  end(): void {
    if (this.#exchange.aborted) return;
    if (this.#writtenBytes < (this.#totalBytes ?? 0)) return this.cut();
    if (this.#totalBytes === undefined) this.#readNoMore();
    if (this.#totalBytes === undefined || this.#totalBytes === 0) this.#exchange.raw.cork(() => this.#exchange.raw.end());
    this.#exchange.finished();
  }

  /** Breaks the connection, so that the client sees that the body is not whole. */
  cut(): void {
    if (!this.#exchange.aborted && !this.#complete) this.#exchange.raw.close();
  }

  /**
   * Of a connection that ends with this answer: what else comes is left in the kernel, the client closes, and if it does
   * not, uWebSockets.js does some seconds later. Not earlier than must be, because without reading nobody sees a client go.
   */
  #readNoMore(): void {
    if (this.#exchange.closes) this.#exchange.raw.pause();
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
    let hasRoom = true;
    response.cork(() => {
      [hasRoom, this.#complete] = response.tryEnd(chunk, totalBytes);
    });
    if (hasRoom) return;
    await this.#room((resolve) =>
      response.onWritable((sentBytes) => {
        [hasRoom, this.#complete] = response.tryEnd(chunk.subarray(sentBytes - offset), totalBytes);
        if (hasRoom) resolve();
        return hasRoom;
      }),
    );
  }

  async #room(listen: (resolve: () => void) => void): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#wait = { resolve, reject };
    const timer = setTimeout(() => this.cut(), this.#stallMs);
    // Not in the same go: uWebSockets.js puts the listener that it has just called back in place of one that is set meanwhile.
    listen(() => setImmediate(resolve));
    try {
      await promise;
    } finally {
      clearTimeout(timer);
      this.#wait = undefined;
    }
  }
}
