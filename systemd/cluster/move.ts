/**
 * Moves what a single server stores into a cluster. A server that is started as a node of a cluster throws away what it stored
 * alone, so it cannot simply become one: each stream is read from a server that runs on the former store, and restored into the
 * cluster as it was, revisions included.
 */
import type { StreamInfo } from "@nats-io/jetstream";
import { openStorage } from "../../shared/bus/jetstream.ts";
import type { Bus } from "../../shared/bus/nats.ts";
import { copyStream, makeStreamAgain } from "../../shared/bus/stream-copies.ts";
import { StartFailure } from "../base/failure.ts";
import { storedStreams } from "./replicas.ts";

/** Moves all streams of an account. Those that an earlier attempt has moved completely stay as they are. @throws {StartFailure}, {CopyFailed} */
export async function moveStreams(from: Bus, to: Bus, copies: number, say: (line: string) => void): Promise<void> {
  const there = new Map((await storedStreams(to)).map((stream) => [stream.config.name, stream]));
  const { jsm } = await openStorage(to);
  for (const { config, state } of await storedStreams(from)) {
    const { name } = config;
    const found = there.get(name);
    if (found && isSame(found.state, state)) continue;
    if (found) await jsm.streams.delete(name);
    say(name);
    await moveStream(from, to, name, copies);
    const moved = (await jsm.streams.info(name)).state;
    if (!isSame(moved, state)) throw new StartFailure(`${name} has ${moved.messages} entries in the cluster, and ${state.messages} in the former store`);
  }
}

const isSame = (one: StreamInfo["state"], other: StreamInfo["state"]): boolean => one.messages === other.messages && one.last_seq === other.last_seq;

async function moveStream(from: Bus, to: Bus, name: string, copies: number): Promise<void> {
  const copy = await copyStream(from.connection, name);
  if (!copy) throw new StartFailure(`${name} is not in the former store any more`);
  const { config, state } = copy.shape;
  await makeStreamAgain(to.connection, { config: { ...config, num_replicas: copies }, state }, copy.pieces);
}
