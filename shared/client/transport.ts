/** One HTTP exchange, implemented for Node and for browsers. Redirects are not followed: the key is for one server only. */

/** Bytes that arrive in pieces. */
export type ByteStream = AsyncIterable<Uint8Array>;

export interface WireRequest {
  readonly method: string;
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  /** A stream is read as fast as the server accepts it. */
  readonly body?: string | Uint8Array | ByteStream | undefined;
  /** Ends the exchange, even while the body of the answer is read. */
  readonly signal: AbortSignal;
}

export interface WireAnswer {
  readonly status: number;
  readonly headers: Headers;
  /** Leaving the loop early closes the connection. Throws if the body is incomplete. */
  readonly body: ByteStream;
}

/** Resolves when the head of the answer has arrived. @throws the error of the network, or the signal's reason */
export type Transport = (request: WireRequest) => Promise<WireAnswer>;
