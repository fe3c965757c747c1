/**
 * A filter for layer archives with names longer than the kernel accepts at once. `tar` fails on these, because it names
 * everything from the top. The filter cuts such names: each folder at which a name gets too long becomes a top of its own in
 * the folder given as argument, and its contents, including targets of hard links, are named from there. All else passes
 * unchanged, to the byte. At the end, the file `joints` in that folder says where each top belongs, deepest first: the name of
 * the top, the folder it belongs in and its name there, each ended by a NUL.
 *
 * Archive libraries decode names as text and drop records they do not know, so they could not reproduce their input.
 */
import { createReadStream, createWriteStream, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";

const blockBytes = 512;
/** The most bytes of a path from its top, leaving room below PATH_MAX for one more name and for what precedes it. */
const pathBytesMax = 3_000;
/** A header's records are held as a whole: a path and all extended attributes of a file, which the kernel limits to 64 KiB. */
const recordBytesMax = 256 * 1024 * 1024;

const padded = (bytes: number): number => Math.ceil(bytes / blockBytes) * blockBytes;
const typeOf = (header: Buffer): string => header.toString("latin1", 156, 157);

/** The number in a header field: octal digits or, for larger numbers, a binary number marked by its first bit. */
function numberOf(field: Buffer): number {
  const value = (field[0] as number) & 0x80 ? Number(`0x${field.subarray(1).toString("hex")}`) : Number.parseInt(field.toString("latin1").trim() || "0", 8);
  if (!Number.isSafeInteger(value) || value < 0) throw new Error("the archive has a header that cannot be read");
  return value;
}

const sizeOf = (header: Buffer): number => numberOf(header.subarray(124, 136));

/** A copy of this header with another size. */
function withSize(header: Buffer, bytes: number): Buffer {
  const changed = Buffer.from(header);
  changed.write(`${bytes.toString(8).padStart(11, "0")}\0`, 124, "latin1");
  changed.fill(" ", 148, 156);
  const sum = changed.reduce((total, byte) => total + byte, 0);
  changed.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1");
  return changed;
}

/** Parses the records `LENGTH KEY=VALUE\n` before a header. The length includes itself; a byte is a character. */
function parseRecords(content: Buffer): [key: string, value: string][] {
  const records: [string, string][] = [];
  for (let at = 0; at < content.length; ) {
    const bytes = Number.parseInt(content.toString("latin1", at, at + 20), 10);
    const text = content.toString("latin1", content.indexOf(" ", at) + 1, at + bytes);
    const equals = text.indexOf("=");
    if (!(bytes > 0) || equals < 1 || !text.endsWith("\n")) throw new Error("the archive has a record that cannot be read");
    records.push([text.slice(0, equals), text.slice(equals + 1, -1)]);
    at += bytes;
  }
  return records;
}

function formatRecord([key, value]: [string, string]): Buffer {
  const bytes = key.length + value.length + 3;
  let total = bytes + `${bytes}`.length;
  total = bytes + `${total}`.length;
  return Buffer.from(`${total} ${key}=${value}\n`, "latin1");
}

/** The input, in pieces of the requested lengths. */
class Input {
  readonly #chunks: AsyncIterator<Buffer>;
  #rest: Buffer = Buffer.alloc(0);

  constructor(source: AsyncIterable<Buffer>) {
    this.#chunks = source[Symbol.asyncIterator]();
  }

  /** The next bytes as they arrive, `bytes` in total or up to the end. */
  async *upTo(bytes: number): AsyncGenerator<Buffer> {
    for (let missing = bytes; missing > 0; ) {
      if (this.#rest.length === 0) {
        const { value, done } = await this.#chunks.next();
        if (done) return;
        this.#rest = value;
      }
      const piece = this.#rest.subarray(0, missing);
      this.#rest = this.#rest.subarray(piece.length);
      missing -= piece.length;
      yield piece;
    }
  }

  /** The next `bytes` bytes in one piece. */
  async exactly(bytes: number): Promise<Buffer> {
    const pieces: Buffer[] = [];
    for await (const piece of this.upTo(bytes)) pieces.push(piece);
    const whole = pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces);
    if (whole.length < bytes) throw new Error("the archive is cut off");
    return whole;
  }
}

/** Maps names to short ones, and keeps the tops. */
class Names {
  readonly #folder: string;
  readonly #tops = new Map<string, string>();

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** A short name. Links to a file get the same name as the file itself. */
  shortened(name: string, isFolder: boolean): string {
    if (name.length <= pathBytesMax) return name;
    // A packed folder has no other names; one that leads out of the folder could be hidden by the cuts.
    if (!name.startsWith("./") || /\/\.{0,2}\//.test(name) || /\/\.{1,2}$/.test(name)) throw new Error("the archive has a name that leads elsewhere");
    const path = isFolder ? name.replace(/\/$/, "") : name;
    let [top, at] = ["", 2];
    for (;;) {
      const slash = path.indexOf("/", at + pathBytesMax + 1);
      if (slash < 0 && !(isFolder && path.length - at > pathBytesMax)) return `./${top}${path.slice(at)}${isFolder ? "/" : ""}`;
      const end = slash < 0 ? path.length : slash;
      top = this.#topFor(`${top}${path.slice(at, end)}`);
      at = end + 1;
    }
  }

  #topFor(place: string): string {
    const top = this.#tops.get(place) ?? `${this.#folder}/${this.#tops.size}/`;
    this.#tops.set(place, top);
    return top;
  }

  /** The contents of `joints`. A top comes after the top that contains its place. */
  joints(): Buffer {
    const parts = [...this.#tops].reverse().flatMap(([place, top]) => {
      const slash = place.lastIndexOf("/");
      return [top.slice(0, -1), place.slice(0, slash), place.slice(slash + 1)];
    });
    return Buffer.from(parts.map((part) => `${part}\0`).join(""), "latin1");
  }
}

/** The records of the member whose header is `header`, with short names. */
function shortenedRecords(content: Buffer, header: Buffer, names: Names): { records: Buffer; sizeBytes: number } {
  const [isFolder, isHardLink] = [typeOf(header) === "5", typeOf(header) === "1"];
  let sizeBytes = sizeOf(header);
  const records = parseRecords(content).map(([key, value]): [string, string] => {
    if (key === "size") sizeBytes = Number(value);
    if (key === "path" || key === "GNU.sparse.name") return [key, names.shortened(value, isFolder)];
    return key === "linkpath" && isHardLink ? [key, names.shortened(value, false)] : [key, value];
  });
  if (!Number.isSafeInteger(sizeBytes)) throw new Error("the archive has a size that cannot be read");
  return { records: Buffer.concat(records.map(formatRecord)), sizeBytes };
}

/** The archive with short names. Names inside a header itself are always short. */
async function* shortened(input: Input, names: Names): AsyncGenerator<Buffer> {
  for (;;) {
    const header = await input.exactly(blockBytes);
    if (header.every((byte) => byte === 0)) {
      yield header;
      return yield* input.upTo(Number.POSITIVE_INFINITY);
    }
    if (typeOf(header) !== "x") {
      yield header;
      yield* input.upTo(padded(sizeOf(header)));
      continue;
    }
    const bytes = sizeOf(header);
    if (bytes > recordBytesMax) throw new Error("the archive has records that are too long");
    const content = (await input.exactly(padded(bytes))).subarray(0, bytes);
    const member = await input.exactly(blockBytes);
    const { records, sizeBytes } = shortenedRecords(content, member, names);
    yield Buffer.concat([withSize(header, records.length), records, Buffer.alloc(padded(records.length) - records.length), member]);
    yield* input.upTo(padded(sizeBytes));
  }
}

const folder = process.argv[2] as string;
const names = new Names(folder);
await pipeline(shortened(new Input(createReadStream("", { fd: 0 })), names), createWriteStream("", { fd: 1 }));
writeFileSync(join(folder, "joints"), names.joints());
