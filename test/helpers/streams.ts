/** Two processes on one bus with a stream between them. */
import { Stream } from "../../shared/stream/stream.ts";
import type { TestNats } from "./nats.ts";
import { until } from "./until.ts";

export type Member = Awaited<ReturnType<TestNats["member"]>>;

export interface StreamPair {
  readonly from: Member;
  readonly to: Member;
  readonly sender: Stream;
  readonly receiver: Stream;
}

/** A sending and a receiving process that know each other, and an open stream. */
export async function openStream(nats: TestNats, windowBytes = 64 * 1024): Promise<StreamPair> {
  const [from, to] = await Promise.all([nats.member(), nats.member()]);
  await until("the two to know each other", () => from.peers.has(to.peers.peer) && to.peers.has(from.peers.peer));
  const receiver = Stream.open(to.hub, from.peers.peer, { windowBytes });
  return { from, to, receiver, sender: Stream.answer(from.hub, receiver.target, { windowBytes }) };
}

/** Reads a stream to its end: the bytes, and the summary or the error. */
export async function drainStream(receiver: Stream): Promise<{ bytes: Buffer; summary?: unknown; error?: unknown }> {
  const chunks: Uint8Array[] = [];
  const items = receiver.read();
  try {
    for (let next = await items.next(); ; next = await items.next()) {
      if (next.done) return { bytes: Buffer.concat(chunks), summary: next.value };
      chunks.push(next.value);
    }
  } catch (error) {
    return { bytes: Buffer.concat(chunks), error };
  }
}
