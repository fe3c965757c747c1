/**
 * The form in which images of processes leave a machine: encrypted and authenticated with a key that only the helpers of one
 * installation have. Whoever carries such a stream can neither read it nor have anything restored from it but the very image that is
 * asked for: CRIU believes as root what it reads.
 *
 * A head of magic bytes and a salt, from which each stream has a key of its own; then chunks, each with its length in front. The nonce
 * of a chunk is its place in the stream and whether it is the last, so that none can be left out, repeated or moved; the identity of
 * the image is authenticated with each, so that no chunk and no stream passes for that of another image. The last chunk is empty.
 */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";
import { ByteSource } from "../../../shared/util/byte-source.ts";
import { Refusal } from "../refusal.ts";

const magic = Buffer.from("SGMEM\x01");
const saltBytes = 32;
const headBytes = magic.length + saltBytes;
export const keyBytes = 32;
const tagBytes = 16;
const lengthBytes = 4;
const chunkBytesMax = 64 * 1024;
const chunksMax = 2 ** 32;
/** Of the word in front of the last chunk. */
const lastBit = 0x80000000;
const cipher = "aes-256-gcm";

/** What encrypts and decrypts the chunks of one stream, one after the other. */
class Chunks {
  readonly #key: Buffer;
  readonly #bound: Buffer;
  #count = 0;

  /** @param identity of the image */
  constructor(key: Uint8Array, identity: number, head: Buffer) {
    this.#key = Buffer.from(hkdfSync("sha256", key, head.subarray(magic.length), "sandgate image of processes", keyBytes));
    const known = Buffer.alloc(8);
    known.writeBigUInt64BE(BigInt(identity));
    this.#bound = Buffer.concat([head, known]);
  }

  encrypt(plain: Uint8Array, isLast = false): Buffer {
    const encrypting = createCipheriv(cipher, this.#key, this.#nonce(isLast), { authTagLength: tagBytes }).setAAD(this.#bound);
    const bytes = Buffer.concat([encrypting.update(plain), encrypting.final()]);
    const length = Buffer.alloc(lengthBytes);
    length.writeUInt32BE((bytes.length | (isLast ? lastBit : 0)) >>> 0);
    return Buffer.concat([length, bytes, encrypting.getAuthTag()]);
  }

  /** @throws {Refusal} unless it is the next one of the stream */
  decrypt(bytes: Buffer, tag: Buffer, isLast: boolean): Buffer {
    const decrypting = createDecipheriv(cipher, this.#key, this.#nonce(isLast), { authTagLength: tagBytes }).setAAD(this.#bound).setAuthTag(tag);
    try {
      return Buffer.concat([decrypting.update(bytes), decrypting.final()]);
    } catch {
      throw forged("it was changed on its way, is another image, or comes from another installation");
    }
  }

  #nonce(isLast: boolean): Buffer {
    if (this.#count === chunksMax) throw new Refusal("refused", "the image is too large to leave this machine");
    const nonce = Buffer.alloc(12);
    nonce.writeUInt32BE(this.#count++, 7);
    nonce.writeUInt8(isLast ? 1 : 0, 11);
    return nonce;
  }
}

/**
 * The stream of an image. It has its end, without which nobody takes it, only when `body` has one.
 *
 * @param key of the installation
 * @param about comes before the body; at most 64 KiB
 */
export async function* seal(key: Uint8Array, identity: number, about: Uint8Array, body: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  const head = Buffer.concat([magic, randomBytes(saltBytes)]);
  const chunks = new Chunks(key, identity, head);
  yield head;
  yield chunks.encrypt(about);
  for await (const part of body) {
    for (let from = 0; from < part.length; from += chunkBytesMax) yield chunks.encrypt(part.subarray(from, from + chunkBytesMax));
  }
  yield chunks.encrypt(Buffer.alloc(0), true);
}

/** What is in a stream, each byte given only when it is known to be genuine. */
export interface Opened {
  readonly about: Buffer;
  /** Throws a `Refusal`, at the end at the latest, if the stream is not whole. */
  readonly body: AsyncGenerator<Buffer>;
}

/** @throws {Refusal} unless the stream begins as that of this image, sealed with this key */
export async function unseal(key: Uint8Array, identity: number, stream: AsyncIterable<Uint8Array>): Promise<Opened> {
  const bytes = new ByteSource(stream, () => forged("its end is missing"));
  const head = await bytes.take(headBytes);
  if (!head.subarray(0, magic.length).equals(magic)) throw forged("it is no such image");
  const chunks = new Chunks(key, identity, head);
  const next = async (): Promise<{ readonly plain: Buffer; readonly isLast: boolean }> => {
    const word = (await bytes.take(lengthBytes)).readUInt32BE();
    const isLast = (word & lastBit) !== 0;
    const length = (word & ~lastBit) >>> 0;
    if (length > chunkBytesMax) throw forged("a part of it is too long");
    return { plain: chunks.decrypt(await bytes.take(length), await bytes.take(tagBytes), isLast), isLast };
  };
  const { plain: about, isLast } = await next();
  if (isLast) throw forged("it is empty");
  return { about, body: rest(bytes, next) };
}

async function* rest(bytes: ByteSource, next: () => Promise<{ readonly plain: Buffer; readonly isLast: boolean }>): AsyncGenerator<Buffer> {
  for (let chunk = await next(); !chunk.isLast; chunk = await next()) yield chunk.plain;
  if (!(await bytes.areOver())) throw forged("something follows its end");
}

const forged = (why: string): Refusal => new Refusal("refused", `the image of memory cannot be trusted: ${why}`);
