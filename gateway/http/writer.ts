/** Streams a response body at the client's speed: `write` resolves when the socket has room for more. */
import { SandgateError } from "../../shared/errors.ts";
import { errors } from "../../shared/known-errors.ts";
import type { Exchange, Headers } from "./exchange.ts";

/** uWebSockets.js closes a connection that takes nothing for ten seconds, unless it is told in time that somebody still waits. */
const renewalMs = 4_000;

/** uWebSockets.js collects 16 KiB in a cork, with what it puts before a piece: some ten bytes, and three headers before the first. */
const corkBytes = 16 * 1024 - 256;

export class BodyWriter {
  readonly #exchange: Exchange;
  readonly #totalBytes: number | undefined;
  readonly #stallMs: number;
  #writtenBytes = 0;
  /** The last byte of the Content-Length is written. uWS has ended the response, which must not be used any more. */
  #complete = false;
  #readsNoMore = false;
  #wait: { resolve: () => void; reject: (error: SandgateError) => void } | undefined;

  /**
   * Sends status and headers.
   *
   * @param totalBytes sent as Content-Length; undefined for a chunked body.
   * @param stallMs a client that reads nothing for this long is disconnected.
   */
  constructor(exchange: Exchange, options: { contentType: string; headers?: Headers; totalBytes?: number | undefined; stallMs: number }) {
    this.#exchange = exchange;
    this.#totalBytes = options.totalBytes;
    this.#stallMs = options.stallMs;
    exchange.onAbort((reason) => this.#wait?.reject(reason));
    if (exchange.aborted) return;
    const closing = exchange.closes ? { connection: "close" } : {};
    exchange.corked(() => exchange.begin(200, options.contentType, { ...options.headers, ...closing }));
    // With a known length, `tryEnd` may write the end of the response, and it cannot close the connection.
    if (options.totalBytes !== undefined) this.#readNoMore();
  }

  /** @throws {SandgateError} when the client has disconnected or stalls, or when the body exceeds the announced length. */
  async write(chunk: Uint8Array): Promise<void> {
    if (this.#exchange.aborted) throw errors.clientGone();
    this.#writtenBytes += chunk.length;
    // The client would read bytes beyond the Content-Length as the response to its next request.
    if (this.#writtenBytes > (this.#totalBytes ?? Number.POSITIVE_INFINITY)) throw new SandgateError("internal_error", "more bytes than were announced");
    if (this.#totalBytes === undefined) await this.#writeChunked(chunk);
    else await this.#writeCounted(chunk, this.#totalBytes);
  }

  /** Ends the body. A body shorter than the announced length cuts the connection. */
  end(): void {
    if (this.#exchange.aborted) return;
    if (this.#writtenBytes < (this.#totalBytes ?? 0)) return this.cut();
    if (this.#totalBytes === undefined) this.#readNoMore();
    if (this.#totalBytes === undefined || this.#totalBytes === 0) this.#exchange.raw.cork(() => this.#exchange.raw.end());
    this.#exchange.finished();
  }

  /** Cuts the connection, so that the client notices that the body is incomplete. */
  cut(): void {
    if (!this.#exchange.aborted && !this.#complete) this.#exchange.raw.close();
  }

  /**
   * Stops reading from a connection that is to close: further bytes stay in the kernel, and the client closes, or
   * uWebSockets.js does so some seconds later. Called as late as possible, because a disconnect goes unnoticed without reading.
   */
  #readNoMore(): void {
    if (!this.#exchange.closes) return;
    this.#readsNoMore = true;
    this.#exchange.raw.pause();
  }

  /** In pieces that a cork holds whole: what does not fit into it is lost if the client cannot take what is in it at once. */
  async #writeChunked(chunk: Uint8Array): Promise<void> {
    const response = this.#exchange.raw;
    for (let at = 0; at < chunk.length; at += corkBytes) {
      let hasRoom = true;
      response.cork(() => {
        hasRoom = response.write(chunk.subarray(at, at + corkBytes));
      });
      if (hasRoom) continue;
      await this.#room((resolve) =>
        response.onWritable(() => {
          resolve();
          return true;
        }),
      );
    }
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
    const renewal = setInterval(() => this.#renew(), renewalMs);
    listen(() => {
      // At once: uWebSockets.js has just turned its own clock off, for as long as there is room.
      clearInterval(renewal);
      // Deferred: it restores the listener that it has just called, which would replace one set during the call.
      setImmediate(resolve);
    });
    try {
      await promise;
    } finally {
      clearTimeout(timer);
      clearInterval(renewal);
      this.#wait = undefined;
    }
  }

  /** Starts the clock of uWebSockets.js anew: to pause turns it off, and to go on starts it. */
  #renew(): void {
    this.#exchange.raw.pause();
    if (!this.#readsNoMore) this.#exchange.raw.resume();
  }
}
