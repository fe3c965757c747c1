/**
 * What stands before the archive of a difference that has only some blocks of its large files: which blocks of which files. Earlier
 * versions do not know such an archive, and refuse it.
 */
import Type, { type Static } from "typebox";
import { SandgateError } from "../../../shared/errors.ts";
import { checker } from "../../../shared/schemas/validate.ts";
import { attempt } from "../../../shared/util/attempt.ts";

/** More files, or ranges of all together, would take long to describe. Further files are stored whole. */
export const filesMax = 4_096;
export const rangesMax = 131_072;

const mark = "sandgate-blocks-1 ";
const lengthDigits = 8;
const textBytesMax = 16 * 1024 ** 2;

const Offset = Type.Integer({ minimum: 0 });
const BlockFile = Type.Object({
  /** Below the folder of the layer, in hexadecimal digits, since it may be no text. */
  path: Type.String({ pattern: "^(?:[0-9a-f]{2})+$" }),
  size: Offset,
  sha256: Type.String({ pattern: "^[0-9a-f]{64}$" }),
  /** Begin and end of what the difference has itself, in order. The rest is that of the layers below. */
  kept: Type.Array(Type.Tuple([Offset, Offset]), { maxItems: rangesMax }),
});
/** A file of which a difference has only some blocks. */
export type BlockFile = Static<typeof BlockFile>;

const check = checker(Type.Array(BlockFile, { maxItems: filesMax }));

/** The archive, with the files of which it has only some blocks before it, if there are any. */
export async function* withBlockFiles(files: readonly BlockFile[], archive: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  if (files.length > 0) {
    const text = Buffer.from(JSON.stringify(files));
    yield Buffer.concat([Buffer.from(mark + String(text.length).padStart(lengthDigits, "0")), text]);
  }
  yield* archive;
}

/** Takes the two apart. The archive must be read. @throws {SandgateError} `internal_error`; what the stream throws */
export async function blockFilesOf(stream: AsyncIterable<Uint8Array>): Promise<{ files: BlockFile[]; archive: AsyncGenerator<Uint8Array> }> {
  const parts = stream[Symbol.asyncIterator]();
  let head = Buffer.alloc(0);
  const readTo = async (bytes: number): Promise<void> => {
    const chunks: Uint8Array[] = [head];
    for (let length = head.length; length < bytes; ) {
      const { value, done } = await parts.next();
      if (done) break;
      chunks.push(value);
      length += value.length;
    }
    head = Buffer.concat(chunks);
  };
  const take = (bytes: number): string => {
    const text = head.toString("utf8", 0, bytes);
    head = head.subarray(bytes);
    return text;
  };
  await readTo(mark.length);
  let files: BlockFile[] = [];
  if (head.toString("utf8", 0, mark.length) === mark) {
    await readTo(mark.length + lengthDigits);
    const length = Number(take(mark.length + lengthDigits).slice(mark.length));
    if (!(length <= textBytesMax)) throw damaged();
    await readTo(length);
    if (head.length < length) throw damaged();
    files = checked(take(length));
  }
  return { files, archive: rest(head, parts) };
}

async function* rest(head: Uint8Array, parts: AsyncIterator<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    if (head.length > 0) yield head;
    for (let next = await parts.next(); !next.done; next = await parts.next()) yield next.value;
  } finally {
    await parts.return?.();
  }
}

function checked(text: string): BlockFile[] {
  const files = attempt(() => check(JSON.parse(text)));
  if (!files?.every(isInOrder)) throw damaged();
  return files;
}

function isInOrder({ size, kept }: BlockFile): boolean {
  let at = 0;
  for (const [begin, end] of kept) {
    if (begin < at || end < begin) return false;
    at = end;
  }
  return at <= size;
}

const damaged = (): SandgateError => new SandgateError("internal_error", "the archive of a snapshot's files is damaged");
