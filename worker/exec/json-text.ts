/**
 * Output as the JSON text of an object with one string, as `JSON.stringify` would write it. Valid UTF-8 is escaped as bytes, which takes
 * less than half of the time of making a string of it and bytes of that again.
 */
import { isUtf8 } from "node:buffer";
import { StringDecoder } from "node:string_decoder";
import { asideBytesMax } from "../runtime/process/aside.ts";

/** 1 for bytes that are escaped: control characters, quotation marks and backslashes. */
const isEscaped = new Uint8Array(256).fill(1, 0, 0x20).fill(1, 0x22, 0x23).fill(1, 0x5c, 0x5d);
/** The longest that a byte becomes. */
const escapeBytes = 6;

/** Made once, because output is converted and sent at once; a longer chunk than usual gets memory of its own. */
const scratch = Buffer.allocUnsafeSlow(escapeBytes * asideBytesMax + 1024);

/** Below it, to look at bytes one by one takes less. */
const longBytes = 256;
/** In each of four bytes at once. */
const [ones, highs, spaces, quotes, backslashes] = [0x01010101, 0x80808080 | 0, 0x20202020, 0x22222222, 0x5c5c5c5c] as const;

/** Of how many bytes from there on no four have one that is escaped. @param from where four bytes begin as one number does */
function plainFours(bytes: Buffer, from: number): number {
  const fours = new Int32Array(bytes.buffer, bytes.byteOffset + from, (bytes.length - from) >> 2);
  let plain = 0;
  for (; plain < fours.length; plain++) {
    const four = fours[plain] as number;
    // The high bit is borrowed from where a byte is below 0x20, or nothing is left of it.
    if (((four - spaces) | ((four ^ quotes) - ones) | ((four ^ backslashes) - ones)) & ~four & highs) break;
  }
  return 4 * plain;
}

/** How many bytes at the beginning are the same as text of a JSON string. */
function plainLength(bytes: Buffer): number {
  const aligned = -bytes.byteOffset & 3;
  let plain = 0;
  while (plain < bytes.length && isEscaped[bytes[plain] as number] === 0) {
    plain++;
    if (plain === aligned + 4 && bytes.length >= longBytes) plain += plainFours(bytes, plain);
  }
  return plain;
}

/** Writes bytes of valid UTF-8 as text of a JSON string. @param plain see `plainLength` @returns where it ends */
function writeEscaped(into: Buffer, at: number, bytes: Buffer, plain = plainLength(bytes)): number {
  const end = at + bytes.copy(into, at, 0, plain);
  if (plain === bytes.length) return end;
  // As characters of one byte each, those of UTF-8 come back as they are, and V8 escapes the others faster than a loop here could.
  return end + into.write(JSON.stringify(bytes.toString("latin1", plain)).slice(1, -1), end, "latin1");
}

const isContinuation = (byte = 0): boolean => (byte & 0xc0) === 0x80;

/** The bytes at the end that begin a character, and how many of it are still to come. */
function unfinished(bytes: Uint8Array): { readonly has: number; readonly needs: number } {
  for (let has = 1; has <= 3 && has <= bytes.length; has++) {
    const byte = bytes[bytes.length - has] as number;
    if (isContinuation(byte)) continue;
    const length = (byte & 0xe0) === 0xc0 ? 2 : (byte & 0xf0) === 0xe0 ? 3 : (byte & 0xf8) === 0xf0 ? 4 : 1;
    return length > has ? { has, needs: length - has } : nothing;
  }
  return nothing;
}
const nothing = { has: 0, needs: 0 };
const nothingMore = Buffer.alloc(0);

/** A line in parts, one after the other; their memory is used again for the next line of whichever output. */
export type Parts = readonly Uint8Array[];

/** Decodes UTF-8 that comes in pieces, which may end inside a character; what is not valid becomes U+FFFD. */
export class JsonText {
  readonly #before: Buffer;
  readonly #after = Buffer.from('"}\n');
  /** Holds the beginning of a character, and decodes what is not valid. */
  readonly #decoder = new StringDecoder("utf8");
  /** How many bytes of that character are still to come. */
  #needs = 0;

  constructor(name: string) {
    this.#before = Buffer.from(`{${JSON.stringify(name)}:"`);
  }

  /** The line for a piece, whose memory may be a part of it; undefined when it completes no character. */
  take(piece: Buffer): Parts | undefined {
    let from = 0;
    while (from < this.#needs && isContinuation(piece[from])) from++;
    // Something else comes in the middle of a character.
    if (from < this.#needs && from < piece.length) return this.#decoded(piece);
    const first = from > 0 ? this.#decoder.write(piece.subarray(0, from)) : "";
    this.#needs -= from;
    const rest = piece.subarray(from);
    const { has, needs } = unfinished(rest);
    const whole = rest.subarray(0, rest.length - has);
    if (!isUtf8(whole)) return this.#decoded(rest, first);
    if (has > 0) this.#decoder.write(rest.subarray(whole.length));
    if (rest.length > 0) this.#needs = needs;
    return this.#line(first, whole);
  }

  /** The line for what was left unfinished. */
  end(): Parts | undefined {
    this.#needs = 0;
    return this.#line(this.#decoder.end());
  }

  #decoded(piece: Buffer, first = ""): Parts | undefined {
    this.#needs = unfinished(piece).needs;
    return this.#line(first + this.#decoder.write(piece));
  }

  #line(first: string, bytes: Buffer = nothingMore): Parts | undefined {
    if (first === "" && bytes.length === 0) return undefined;
    const plain = plainLength(bytes);
    if (first === "" && plain === bytes.length) return [this.#before, bytes, this.#after];
    const text = Buffer.from(first);
    const most = escapeBytes * (text.length + bytes.length) + this.#before.length + this.#after.length;
    const into = most <= scratch.length ? scratch : Buffer.allocUnsafe(most);
    into.set(this.#before, 0);
    const end = writeEscaped(into, writeEscaped(into, this.#before.length, text), bytes, plain);
    into.set(this.#after, end);
    return [into.subarray(0, end + this.#after.length)];
  }
}
