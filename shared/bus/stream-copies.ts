/** Copies of whole JetStream streams, as `nats stream backup` makes them: consistent while the stream is in use. */
import type { NatsConnection, Subscription } from "@nats-io/transport-node";
import { newId } from "../util/ids.ts";
import { retry, within } from "../waiting.ts";
import { isUnheard } from "./failures.ts";
import { storeCalls, subjects } from "./subjects.ts";

const chunkBytes = 128 * 1024;
/** The server first writes what it has in memory, and answers the last piece when it has read everything. */
const answerMs = 60_000;
const silenceMs = 60_000;
/** Servers of a cluster tell each other who listens, which may take longer than the answer that names where to send the pieces. */
const unheardMs = 50;
const unheardMax = 200;

/** What the server says of a copied stream, and wants to hear when it makes the stream again. */
export interface StreamShape {
  readonly config: { readonly name: string; readonly max_bytes: number; readonly num_replicas?: number };
  readonly state: { readonly messages: number; readonly bytes: number; readonly last_seq: number };
}

interface Answer extends Partial<StreamShape> {
  readonly deliver_subject?: string;
  readonly error?: { readonly code: number; readonly err_code: number; readonly description: string };
}

/** The server has refused, or has not finished what it began. */
export class CopyFailed extends Error {
  override name = "CopyFailed";
}

/** A copy while it is made. */
export interface StreamCopy {
  readonly shape: StreamShape;
  /** To be read once and to its end, or until the reader has had enough; may throw `CopyFailed`. */
  readonly pieces: AsyncIterable<Uint8Array>;
}

/**
 * Begins to copy a stream. The server sends little more than was read.
 *
 * @returns undefined if there is no such stream
 * @throws {CopyFailed}
 */
export async function copyStream(connection: NatsConnection, stream: string): Promise<StreamCopy | undefined> {
  const deliver_subject = `${subjects.inbox("copy")}.${newId("stream")}`;
  const pieces = connection.subscribe(deliver_subject);
  let copy: StreamCopy | undefined;
  try {
    const { config, state, error } = await ask(connection, storeCalls.snapshot(stream), { deliver_subject, no_consumers: true, chunk_size: chunkBytes });
    if (error?.code === 404) return undefined;
    if (error || !config || !state) throw new CopyFailed(`${stream} cannot be copied: ${error?.description ?? "the server says nothing of it"}`);
    copy = { shape: { config, state }, pieces: piecesOf(pieces, stream) };
    return copy;
  } finally {
    if (!copy) pieces.unsubscribe();
  }
}

async function* piecesOf(sent: Subscription, stream: string): AsyncGenerator<Uint8Array> {
  const pieces = sent[Symbol.asyncIterator]();
  try {
    for (;;) {
      const next = await within(pieces.next(), silenceMs);
      if (!next || next.done) throw new CopyFailed(`${stream} was copied in part only: ${next ? "the connection ended" : "the server fell silent"}`);
      const { data, headers } = next.value;
      // The last one is empty. It has a status if the server gave up.
      if (data.length === 0 && headers && headers.code >= 400) throw new CopyFailed(`${stream} was copied in part only: ${headers.description}`);
      if (data.length === 0) return;
      yield data;
      next.value.respond();
    }
  } finally {
    sent.unsubscribe();
  }
}

/** Makes a stream that is not there from its copy. @throws {CopyFailed} if the copy is not whole, or does not fit the server */
export async function makeStreamAgain(connection: NatsConnection, { config, state }: StreamShape, pieces: AsyncIterable<Uint8Array>): Promise<void> {
  const { name } = config;
  const begun = await ask(connection, storeCalls.restore(name), { config, state });
  if (begun.error || !begun.deliver_subject) throw new CopyFailed(`${name} cannot be made again: ${begun.error?.description ?? "no answer"}`);
  const { deliver_subject } = begun;
  const send = (piece: Uint8Array): Promise<Uint8Array> =>
    retry(
      async () => (await connection.request(deliver_subject, piece, { timeout: answerMs })).data,
      (error, tries) => (isUnheard(error) && tries < unheardMax ? unheardMs : undefined),
    );
  for await (const piece of pieces) {
    const refusal = await send(piece);
    if (refusal.length > 0) throw new CopyFailed(`${name} cannot be made again: ${new TextDecoder().decode(refusal)}`);
  }
  const made = JSON.parse(new TextDecoder().decode(await send(new Uint8Array()))) as Answer;
  if (made.error) throw new CopyFailed(`${name} cannot be made again: ${made.error.description}`);
  // While the copy was made, more may have come.
  if ((made.state?.last_seq ?? 0) < state.last_seq) throw new CopyFailed(`${name} is not whole: it ends at ${made.state?.last_seq}, not at ${state.last_seq}`);
}

async function ask(connection: NatsConnection, call: string, body: object): Promise<Answer> {
  const { data } = await connection.request(`${storeCalls.prefix}.${call}`, JSON.stringify(body), { timeout: answerMs });
  return JSON.parse(new TextDecoder().decode(data)) as Answer;
}
