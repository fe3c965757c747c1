/** One HTTP exchange, implemented for Node and for browsers. Redirects are not followed: the key is for one server only. */
import type { Deadline } from "../abort.ts";
import { APIConnectionError } from "./errors.ts";

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

/** The body, with errors translated to those of the client. The signal applies until its end. */
export async function* translated({ body, headers }: WireAnswer, deadline: Deadline): AsyncGenerator<Uint8Array> {
  try {
    yield* body;
  } catch (error) {
    if (error === deadline.signal.reason) throw error;
    throw new APIConnectionError(`the answer broke off: ${reasonOf(error)}`, { headers, requestId: headers.get("x-request-id") ?? undefined }, error);
  } finally {
    deadline.release();
  }
}

/** The whole body as text, cut when longer than `bytesMax`. */
export async function wholeText(body: ByteStream, bytesMax = Number.POSITIVE_INFINITY): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  let bytes = 0;
  for await (const piece of body) {
    text += decoder.decode(piece, { stream: true });
    bytes += piece.length;
    if (bytes > bytesMax) break;
  }
  return text + decoder.decode();
}

/** The network's own message: `fetch` hides it in `cause`, and Node reports several errors for a name with several addresses. */
export function reasonOf(error: unknown): string {
  const [first] = error instanceof Error && "errors" in error ? (error.errors as unknown[]) : [];
  const told = first ?? (error instanceof Error ? (error.cause ?? error) : error);
  return told instanceof Error && told.message ? told.message : String(error);
}
