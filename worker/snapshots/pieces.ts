/**
 * The bytes of objects in JetStream's object store, written and read one piece at a time. The store's own client takes an
 * object into memory when its reader is slow, and what a killed writer leaves in the store could not be found again.
 */
import { createHash } from "node:crypto";
import type { JetStreamClient, JetStreamManager } from "@nats-io/jetstream";
import type { ObjectInfo } from "@nats-io/obj";
import { SandgateError } from "../../shared/errors.ts";
import type { Bus } from "../../shared/nats.ts";
import { layerSubjects } from "../../shared/subjects.ts";
import { ByteRate } from "./rate.ts";

/** Large enough that the way there and back does not count, small enough for the server's smallest usual limit of 1 MiB. */
const pieceBytesMax = 512 * 1024;
const pieceBytesMin = 32 * 1024;
/** A low rate is kept in steps of this part of a second. */
const stepsPerS = 8;
/** While the server removes pieces it answers nothing else on the connection: gigabytes at once would break it. */
const purgedAtOnce = 16;
const digestType = "SHA-256=";
/** In the record: where in the stream the first piece is, so that the server need not look for it. */
const firstKey = "first_seq";

/** The part of an object's record that its bytes determine. */
type Content = Pick<ObjectInfo, "nuid" | "size" | "chunks" | "digest" | "options" | "metadata">;

export interface WriteOptions {
  readonly bytesPerS: number;
  /** Called before each piece: resolves when nothing more urgent has to be done. */
  readonly giveWay?: (signal: AbortSignal) => Promise<void>;
  readonly signal: AbortSignal;
}

export class Pieces {
  readonly #bus: Bus;
  readonly #js: JetStreamClient;
  readonly #jsm: JetStreamManager;

  constructor(bus: Bus, js: JetStreamClient, jsm: JetStreamManager) {
    this.#bus = bus;
    this.#js = js;
    this.#jsm = jsm;
  }

  /**
   * Stores the bytes under a name of their own. They are part of an object only when a record names them.
   *
   * @throws {SandgateError} `unavailable`; errors of `bytes` and of the signal are passed on.
   */
  async write(layerId: string, attempt: string, bytes: AsyncIterable<Uint8Array>, { bytesPerS, giveWay, signal }: WriteOptions): Promise<Content> {
    const pieceBytes = Math.floor(Math.max(pieceBytesMin, Math.min(pieceBytesMax, bytesPerS / stepsPerS)));
    const rate = new ByteRate(bytesPerS);
    const hash = createHash("sha256");
    const subject = layerSubjects.pieces(layerId, attempt);
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
      nuid: `${layerId}.${attempt}`,
      size: written.size,
      chunks: written.chunks,
      digest: digestType + hash.digest("base64").replaceAll("+", "-").replaceAll("/", "_"),
      options: { max_chunk_size: pieceBytes },
      metadata: { [firstKey]: String(written.first) },
    };
  }

  /** Refused unless the piece follows the one of that number: somebody may have removed the others meanwhile. */
  async #publish(subject: string, piece: Uint8Array, previous: number, signal: AbortSignal): Promise<number> {
    const publish = () => this.#js.publish(subject, piece, { expect: { lastSubjectSequence: previous } });
    return (await unlessAborted(signal, this.#bus.whileConnected(publish))).seq;
  }

  /**
   * The bytes of an object, fetched as they are asked for, one piece ahead.
   *
   * @throws {SandgateError} `unavailable`; `internal_error` at the end at the latest when they are not what was written.
   */
  async *read(layerId: string, object: Content, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    const hash = createHash("sha256");
    const subject = layerSubjects.pieces(layerId, object.nuid.slice(layerId.length + 1));
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
    if (!object.digest.startsWith(digestType) || !hash.digest().equals(digest)) throw damaged("its SHA-256 is another");
  }

  #get(subject: string, fromSeq: number, signal: AbortSignal) {
    const get = () => this.#jsm.direct.getMessage(layerSubjects.stream, { seq: fromSeq, next_by_subj: subject });
    const piece = unlessAborted(signal, this.#bus.whileConnected(get));
    // A piece asked for ahead may fail before anybody waits for it.
    piece.catch(() => {});
    return piece;
  }

  /** How many pieces the store has of one attempt, or of all (`*`). */
  async count(layerId: string, attempt: string): Promise<number> {
    const filter = { subjects_filter: layerSubjects.pieces(layerId, attempt) };
    const { state } = await this.#bus.whileConnected(() => this.#jsm.streams.info(layerSubjects.stream, filter));
    return Object.values(state.subjects ?? {}).reduce((sum, count) => sum + count, 0);
  }

  /** Removes the pieces of every attempt to store the layer. */
  async purge(layerId: string): Promise<void> {
    const filter = layerSubjects.pieces(layerId, "*");
    for (let left = await this.count(layerId, "*"); left > 0; ) {
      left = Math.max(0, left - purgedAtOnce);
      const keep = left > 0 ? { keep: left } : {};
      await this.#bus.whileConnected(() => this.#jsm.streams.purge(layerSubjects.stream, { filter, ...keep }));
    }
  }
}

/** The same bytes in pieces of one length; the last may be shorter. */
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

/** What `promise` brings, or the signal's reason as soon as it is aborted. */
async function unlessAborted<T>(signal: AbortSignal, promise: Promise<T>): Promise<T> {
  signal.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  const abort = (): void => aborted.reject(signal.reason);
  signal.addEventListener("abort", abort, { once: true });
  try {
    return await Promise.race([promise, aborted.promise]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}
