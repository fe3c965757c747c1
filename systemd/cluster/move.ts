/**
 * Moves what a single server stores into a cluster. A server that is started as a node of a cluster throws away what it stored
 * alone, so it cannot simply become one: each stream is read from a server that runs on the former store, and restored into the
 * cluster as it was, revisions included.
 */
import type { StreamConfig, StreamInfo } from "@nats-io/jetstream";
import { createInbox } from "@nats-io/transport-node";
import { openStorage } from "../../shared/bus/jetstream.ts";
import type { Bus } from "../../shared/bus/nats.ts";
import { storeCalls } from "../../shared/bus/subjects.ts";
import { StartFailure } from "../base/failure.ts";
import { storedStreams } from "./replicas.ts";

const chunkBytes = 128 * 1024;
const answerMs = 60_000;

interface Snapshot {
  readonly error?: { readonly description: string };
  readonly config: StreamConfig;
  readonly state: StreamInfo["state"];
}

interface Restore {
  readonly error?: { readonly description: string };
  readonly deliver_subject: string;
}

/** Moves all streams of an account. Those that an earlier attempt has moved completely stay as they are. @throws {StartFailure} */
export async function moveStreams(from: Bus, to: Bus, copies: number, say: (line: string) => void): Promise<void> {
  const there = new Map((await storedStreams(to)).map((stream) => [stream.config.name, stream]));
  const { jsm } = await openStorage(to);
  for (const { config, state } of await storedStreams(from)) {
    const found = there.get(config.name);
    if (found && isSame(found.state, state)) continue;
    if (found) await jsm.streams.delete(config.name);
    say(config.name);
    await moveStream(from, to, config.name, copies);
    const moved = (await jsm.streams.info(config.name)).state;
    if (!isSame(moved, state)) throw new StartFailure(`${config.name} has ${moved.messages} entries in the cluster, and ${state.messages} in the former store`);
  }
}

const isSame = (one: StreamInfo["state"], other: StreamInfo["state"]): boolean => one.messages === other.messages && one.last_seq === other.last_seq;

async function moveStream(from: Bus, to: Bus, name: string, copies: number): Promise<void> {
  const inbox = createInbox();
  const chunks = from.connection.subscribe(inbox);
  try {
    const asked = { deliver_subject: inbox, no_consumers: true, chunk_size: chunkBytes };
    const { config, state } = await ask<Snapshot>(from, storeCalls.snapshot(name), asked);
    const { deliver_subject } = await ask<Restore>(to, storeCalls.restore(name), { config: { ...config, num_replicas: copies }, state });
    for await (const chunk of chunks) {
      // One after the other: the server waits for the answer to each before it sends many more.
      const answer = await to.connection.request(deliver_subject, chunk.data, { timeout: answerMs });
      if (answer.data.length > 0) refuse(name, answer.json<Restore>());
      chunk.respond();
      // The last one is empty.
      if (chunk.data.length === 0) return;
    }
  } finally {
    chunks.unsubscribe();
  }
}

async function ask<T extends { readonly error?: { readonly description: string } }>(bus: Bus, call: string, body: object): Promise<T> {
  const answer = (await bus.connection.request(`${storeCalls.prefix}.${call}`, JSON.stringify(body), { timeout: answerMs })).json<T>();
  return refuse(call, answer);
}

function refuse<T extends { readonly error?: { readonly description: string } }>(what: string, answer: T): T {
  if (answer.error) throw new StartFailure(`${what}: ${answer.error.description}`);
  return answer;
}
