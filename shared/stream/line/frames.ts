/**
 * What two processes say on a line. Each frame begins with the number of bytes that follow (4 bytes, big-endian)
 * and its kind (1 byte). A frame of a stream goes on with the length of the stream's id (1 byte), the id, and the message as it
 * would be sent over NATS; the other kinds have nothing more.
 */
import { SandgateError } from "../../errors.ts";

export const kinds = {
  /** A message of a stream. */
  stream: 1,
  /** Asks the other end to say when it has taken everything up to here. */
  sync: 2,
  /** The answer to that. */
  taken: 3,
} as const;

/** More than NATS takes in one message (1 MiB), whatever a stream is called. */
export const frameBytesMax = 1024 * 1024 + 1024;
const lengthBytes = 4;
const idBytesMax = 64;

/** A frame with nothing but its kind. */
export function bareFrame(kind: (typeof kinds)["sync" | "taken"]): Buffer {
  return Buffer.from([0, 0, 0, 1, kind]);
}

/** A message of a stream as a frame, in one piece of memory. */
export interface StreamFrame {
  readonly streamId: string;
  readonly bytes: Buffer;
  /** The message in it. */
  readonly message: Buffer;
}

/** Memory for frames. */
export type Allocate = (bytes: number) => Buffer;

/** Copies the parts of a message: their memory may be used again at once. @throws {SandgateError} `payload_too_large` */
export function streamFrame(streamId: string, parts: readonly Uint8Array[], allocate: Allocate = Buffer.allocUnsafe): StreamFrame {
  const before = lengthBytes + 2 + streamId.length;
  const total = parts.reduce((sum, { length }) => sum + length, before);
  if (total - lengthBytes > frameBytesMax) throw new SandgateError("payload_too_large", `a message of a stream would have ${total} bytes`);
  const bytes = allocate(total);
  bytes.writeUInt32BE(total - lengthBytes, 0);
  bytes[lengthBytes] = kinds.stream;
  bytes[lengthBytes + 1] = streamId.length;
  bytes.write(streamId, lengthBytes + 2, "latin1");
  let at = before;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return { streamId, bytes, message: bytes.subarray(before) };
}

/** What is in a frame of a stream. @throws {SandgateError} `internal_error` if it is not one */
export function readStreamFrame(body: Buffer): { streamId: string; message: Buffer } {
  const idBytes = body[1] ?? 0;
  if (idBytes === 0 || idBytes > idBytesMax || body.length < 2 + idBytes) throw new SandgateError("internal_error", "a frame on a line names no stream");
  return { streamId: body.toString("latin1", 2, 2 + idBytes), message: body.subarray(2 + idBytes) };
}

/** Finds the frames in bytes that come in pieces of any size. */
export class FrameReader {
  readonly #length = Buffer.alloc(lengthBytes);
  #lengthHas = 0;
  #body: Buffer | undefined;
  #bodyHas = 0;

  /**
   * Takes bytes from `at` on, as far as the end of a frame.
   *
   * @returns where the next bytes begin, and the frame from its kind on, if that was its end. Its memory is its own
   * @throws {SandgateError} `internal_error` for a length that no frame has
   */
  take(bytes: Uint8Array, at: number): { readonly at: number; readonly frame?: Buffer } {
    let from = at;
    if (!this.#body) {
      const some = bytes.subarray(from, from + lengthBytes - this.#lengthHas);
      this.#length.set(some, this.#lengthHas);
      this.#lengthHas += some.length;
      from += some.length;
      if (this.#lengthHas < lengthBytes) return { at: from };
      this.#body = this.#begin();
    }
    const more = bytes.subarray(from, from + this.#body.length - this.#bodyHas);
    this.#body.set(more, this.#bodyHas);
    this.#bodyHas += more.length;
    from += more.length;
    if (this.#bodyHas < this.#body.length) return { at: from };
    const frame = this.#body;
    this.#body = undefined;
    return { at: from, frame };
  }

  #begin(): Buffer {
    const length = this.#length.readUInt32BE(0);
    if (length === 0 || length > frameBytesMax) throw new SandgateError("internal_error", `a frame on a line claims to have ${length} bytes`);
    this.#lengthHas = 0;
    this.#bodyHas = 0;
    return Buffer.allocUnsafe(length);
  }
}
