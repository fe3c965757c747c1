/** How many servers have a copy of everything that is stored. */
import type { JetStreamManager, StreamInfo } from "@nats-io/jetstream";
import { openStorage } from "../../shared/bus/jetstream.ts";
import type { Bus } from "../../shared/bus/nats.ts";

/**
 * Three of them survive the loss of one, five the loss of two. With fewer than three, what there is stays as it is: two copies
 * that must both be there would make the storage less available, and one copy less would make it less safe.
 */
export function copiesFor(nodes: number): number | undefined {
  if (nodes < 3) return undefined;
  return nodes < 5 ? 3 : 5;
}

async function streamsOf(jsm: JetStreamManager): Promise<StreamInfo[]> {
  const streams: StreamInfo[] = [];
  for await (const stream of jsm.streams.list()) streams.push(stream);
  return streams;
}

/** All streams of the account that the connection is in. @throws {SandgateError} `unavailable` */
export const storedStreams = (bus: Bus): Promise<StreamInfo[]> => bus.whileConnected(async () => streamsOf((await openStorage(bus)).jsm));

/** Gives every stream of the account so many copies. @returns the names of those that had another number @throws {SandgateError} `unavailable` */
export async function setCopies(bus: Bus, copies: number): Promise<string[]> {
  const { jsm } = await openStorage(bus, 20_000);
  const others = (await storedStreams(bus)).filter(({ config }) => config.num_replicas !== copies);
  for (const { config } of others) await bus.whileConnected(() => jsm.streams.update(config.name, { num_replicas: copies }));
  return others.map(({ config }) => config.name);
}

/** Whether every copy of a stream is there and has everything. */
export const isComplete = ({ config, cluster }: StreamInfo): boolean =>
  cluster?.leader !== undefined && (cluster.replicas ?? []).filter(({ current }) => current).length === config.num_replicas - 1;
