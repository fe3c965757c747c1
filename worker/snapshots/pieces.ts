/**
 * Writes and reads objects of JetStream's object store one piece at a time. The store's own client buffers a whole object
 * in memory when its reader is slow, and leftovers of a writer killed halfway could not be found again.
 */

import { createHash } from "node:crypto";
import { unlessAborted } from "../../shared/abort.ts";
import type { LayerContent, LayerRecords } from "../../shared/bus/layer-records.ts";
import { layerSubjects } from "../../shared/bus/subjects.ts";
import { ByteRate } from "../../shared/byte-rate.ts";
import { SandgateError } from "../../shared/errors.ts";

/** Large enough to make the round trip negligible, small enough for the server's smallest usual message limit of 1 MiB. */
const pieceBytesMax = 512 * 1024;
const pieceBytesMin = 32 * 1024;
/** At a low rate, one piece is sent per this fraction of a second. */
const stepsPerS = 8;
const digestType = "SHA-256=";
/** Metadata key in the record: the stream sequence of the first piece, so that the server need not search for it. */
const firstKey = "first_seq";

export interface WriteOptions {
  readonly bytesPerS: number;
  /** Called before each piece. Resolves when no more urgent work is left. */
  readonly giveWay?: (signal: AbortSignal) => Promise<void>;
  readonly signal: AbortSignal;
}

export class Pieces {
  readonly #records: LayerRecords;

  constructor(records: LayerRecords) {
    this.#records = records;
  }

  /**
   * Stores the bytes under their own subject. They become part of an object only when a record names them.
   *
   * @throws {SandgateError} `unavailable`; errors of `bytes` and of the signal are passed on.
   */
  async write(subject: string, bytes: AsyncIterable<Uint8Array>, { bytesPerS, giveWay, signal }: WriteOptions): Promise<Omit<LayerContent, "nuid">> {
    const pieceBytes = Math.floor(Math.max(pieceBytesMin, Math.min(pieceBytesMax, bytesPerS / stepsPerS)));
    const rate = new ByteRate(bytesPerS);
    const hash = createHash("sha256");
    const written = { size: 0, chunks: 0, first: 0, last: 0 };
    for await (const piece of inPiecesOf(pieceBytes, bytes)) {
      await rate.take(piece.length, signal);
      await giveWay?.(signal);
      hash.update(piece);
      written.last = await this.#publish(subject, piece, written.last, signal);
      if (written.chunks === 0) written.first = written.last;
      written.chunks++;
      written.size += piece.length;
    }
    return {
      size: written.size,
      chunks: written.chunks,
      digest: digestType + hash.digest("base64").replaceAll("+", "-").replaceAll("/", "_"),
      options: { max_chunk_size: pieceBytes },
      metadata: { [firstKey]: String(written.first) },
    };
  }

  /** Fails unless the piece follows the one with sequence `previous`, since the earlier pieces may have been removed meanwhile. */
  async #publish(subject: string, piece: Uint8Array, previous: number, signal: AbortSignal): Promise<number> {
    const { bus, js } = this.#records;
    const publish = () => js.publish(bus.storeSubject(subject), piece, { expect: { lastSubjectSequence: previous } });
    return (await unlessAborted(signal, bus.whileConnected(publish))).seq;
  }

  /**
   * The bytes of an object, fetched as they are consumed, one piece ahead.
   *
   * @throws {SandgateError} `unavailable`; `internal_error`, at the end at the latest, if they differ from what was written.
   */
  async *read(subject: string, object: LayerContent, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    const hash = createHash("sha256");
    let size = 0;
    let next = this.#get(subject, Number(object.metadata?.[firstKey] ?? 1), signal);
    for (let count = 1; count <= object.chunks; count++) {
      const piece = await next;
      if (!piece) throw damaged(`piece ${count} of ${object.chunks} is missing`);
      if (count < object.chunks) next = this.#get(subject, piece.seq + 1, signal);
      hash.update(piece.data);
      size += piece.data.length;
      yield piece.data;
    }
    if (size !== object.size) throw damaged(`${size} bytes instead of ${object.size}`);
    const digest = Buffer.from(object.digest.slice(digestType.length), "base64url");
    if (!object.digest.startsWith(digestType) || !hash.digest().equals(digest)) throw damaged("its SHA-256 differs");
  }

  #get(subject: string, fromSeq: number, signal: AbortSignal) {
    const { bus, jsm } = this.#records;
    const get = () => jsm.direct.getMessage(layerSubjects.stream, { seq: fromSeq, next_by_subj: subject });
    const piece = unlessAborted(signal, bus.whileConnected(get));
    // A piece fetched ahead may fail before it is awaited.
    piece.catch(() => {});
    return piece;
  }
}

/** Splits the bytes into pieces of equal length; the last one may be shorter. */
async function* inPiecesOf(length: number, bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let piece = Buffer.allocUnsafe(length);
  let filled = 0;
  for await (const part of bytes) {
    for (let taken = 0; taken < part.length; ) {
      const some = part.subarray(taken, taken + length - filled);
      piece.set(some, filled);
      taken += some.length;
      filled += some.length;
      if (filled < length) continue;
      yield piece;
      piece = Buffer.allocUnsafe(length);
      filled = 0;
    }
  }
  if (filled > 0) yield piece.subarray(0, filled);
}

const damaged = (why: string): SandgateError => new SandgateError("internal_error", "the archive of a snapshot's files is damaged", { cause: new Error(why) });
