/** HTTP with `fetch`: in browsers, and in Node if the program passes its own `fetch`. */
import type { ByteStream, Transport } from "./transport.ts";

type Fetch = typeof globalThis.fetch;

export function fetchTransport(fetch: Fetch): Transport {
  return async ({ method, url, headers, body, signal }) => {
    // fetch sets the length itself.
    const { "content-length": _length, ...sent } = headers;
    const init = { method, headers: sent, signal, redirect: "error", ...(await bodyOf(body)) } as RequestInit;
    const response = await fetch(url, init);
    return { status: response.status, headers: response.headers, body: bytesOf(response) };
  };
}

async function bodyOf(body: string | Uint8Array | ByteStream | undefined): Promise<object> {
  if (body === undefined || typeof body === "string" || body instanceof Uint8Array) return { body };
  if (globalThis.process?.versions?.node) return { body: readable(body), duplex: "half" };
  // Browsers send streams over HTTP/2 only, so a stream is collected into one piece.
  const pieces: Uint8Array[] = [];
  for await (const piece of body) pieces.push(piece);
  return { body: new Blob(pieces as Uint8Array<ArrayBuffer>[]) };
}

/** Uses a reader, because some browsers lack the stream's async iterator. */
async function* bytesOf({ body }: Response): AsyncGenerator<Uint8Array> {
  const reader = body?.getReader();
  if (!reader) return;
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) yield next.value;
  } finally {
    await reader.cancel().catch(() => {});
  }
}

/** Bytes as a web stream that is read on demand. */
export function readable(bytes: ByteStream): ReadableStream<Uint8Array> {
  const iterator = bytes[Symbol.asyncIterator]();
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const next = await iterator.next();
        if (next.done) controller.close();
        else controller.enqueue(next.value);
      },
      async cancel() {
        await iterator.return?.();
      },
    },
    { highWaterMark: 0 },
  );
}
