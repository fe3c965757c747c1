/** One HTTP exchange, as Node and browsers each carry it out. Neither follows redirects: the key is for one server. */

/** Bytes that come in pieces. */
export type ByteStream = AsyncIterable<Uint8Array>;

export interface WireRequest {
  readonly method: string;
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  /** A stream is read at the speed at which the server takes it. */
  readonly body?: string | Uint8Array | ByteStream | undefined;
  /** Ends the exchange, also while the answer's body is read. */
  readonly signal: AbortSignal;
}

export interface WireAnswer {
  readonly status: number;
  readonly headers: Headers;
  /** Leaving the loop before the end closes the connection. Ends with an error when the body is not whole. */
  readonly body: ByteStream;
}

/** Resolves when the head of the answer is there. @throws what the network or the signal says */
export type Transport = (request: WireRequest) => Promise<WireAnswer>;
