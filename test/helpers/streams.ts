/** Two processes on one bus with a stream between them. */
import { StreamReceiver } from "../../shared/stream/receiver.ts";
import { StreamSender } from "../../shared/stream/sender.ts";
import type { TestNats } from "./nats.ts";
import { until } from "./until.ts";

export type Member = Awaited<ReturnType<TestNats["member"]>>;

export interface StreamPair {
  readonly from: Member;
  readonly to: Member;
  readonly sender: StreamSender;
  readonly receiver: StreamReceiver;
}

/** A sending and a receiving process that know each other, and an open stream. */
export async function openStream(nats: TestNats, windowBytes = 64 * 1024): Promise<StreamPair> {
  const [from, to] = await Promise.all([nats.member(), nats.member()]);
  await until("the two to know each other", () => from.peers.has(to.peers.peer) && to.peers.has(from.peers.peer));
  const receiver = new StreamReceiver(to.hub, windowBytes).connectTo(from.peers.peer);
  return { from, to, receiver, sender: new StreamSender(from.hub, receiver.target) };
}

/** Reads a stream to its end: the bytes, and the summary or the error. */
export async function drainStream(receiver: StreamReceiver): Promise<{ bytes: Buffer; summary?: unknown; error?: unknown }> {
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
